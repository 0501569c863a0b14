"""Files of access rules for `kctl acls apply`.

```
acls:
  - allow: alice                     or a list; deny: for denials
    for: consumer                    or operations: [read, write]
    topic: [orders, payments]        group, transactional_id, delegation_token, user, cluster: true
    group: billing
  - deny: bob
    operations: all
    hosts: [10.0.0.9]
    topic: pay-
    pattern: prefixed
```

The output of `kctl acls list -o yaml` or `-o json` has this format, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.errors import EngineError
from engine.security.acls import AclBinding
from kctl.arguments import UnreadableArgument
from kctl.commands.acls.options import ResourceOptions
from kctl.commands.acls.rule_texts import RULE_COLUMNS, parse_host
from kctl.commands.acls.wanted_rules import RulesNotClear, RulesRequest, wanted_rules

_RESOURCES: Final = ResourceOptions._fields
KEYS_OF_RULES: Final = frozenset(
    ("allow", "deny", "operations", "hosts", "pattern", "for", "input", *_RESOURCES)
)
_LISTED_KEYS: Final = frozenset(column.key for column in RULE_COLUMNS)


class BadRulesFile(EngineError):
    """A file of access rules is malformed."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.hint = hint


def parse_rules_file(content: bytes, path: str) -> list[AclBinding]:
    """Return the distinct rules of a YAML file, a list or a list under `acls`, in file order.

    `path` is its name in errors. Errors: BadRulesFile.
    """
    import yaml

    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadRulesFile(path, f"not YAML: {error}") from error
    entries = document.get("acls") if isinstance(document, dict) else document
    if isinstance(document, dict) and set(document) != {"acls"}:
        raise BadRulesFile(path, "expected `acls` at the top, and nothing else")
    if entries is None and isinstance(document, dict):
        entries = []
    if not isinstance(entries, list):
        raise BadRulesFile(path, "expected a list of rules")
    rules: list[AclBinding] = []
    for number, entry in enumerate(entries, 1):
        try:
            rules += entry_rules(entry)
        except (RulesNotClear, UnreadableArgument) as error:
            raise BadRulesFile(path, f"rule {number}: {error}", error.hint) from error
    return list(dict.fromkeys(rules))


def entry_rules(entry: object) -> list[AclBinding]:
    """Return the rules that one entry of a rules file declares.

    Errors: RulesNotClear, UnreadableArgument.
    """
    return wanted_rules(_parse_entry(entry))


def _parse_entry(entry: object) -> RulesRequest:
    """Convert one entry of a rules file to the request that `kctl acls create` makes of options.

    An entry has the keys of options, or those of a row that `kctl acls list -o yaml` prints.
    Errors: RulesNotClear, UnreadableArgument.
    """
    if not isinstance(entry, dict):
        raise RulesNotClear("expected a mapping such as {allow: alice, for: producer, topic: t}")
    is_listed = "principal" in entry
    if is_listed:
        entry = _entry_of_listed_row(entry)
    unknown = sorted(str(key) for key in entry if key not in KEYS_OF_RULES)
    if unknown:
        raise RulesNotClear(
            f"no key {', '.join(unknown)}", f"there are {', '.join(sorted(KEYS_OF_RULES))}"
        )
    named = {key: _texts(entry, key) for key in _RESOURCES if key in entry and key != "cluster"}
    cluster = entry.get("cluster", False)
    if not isinstance(cluster, bool):
        raise RulesNotClear("cluster is true or false")
    hosts = _texts(entry, "hosts")
    return RulesRequest(
        allow=_texts(entry, "allow"),
        deny=_texts(entry, "deny"),
        operations=_texts(entry, "operations"),
        # A listed rule is kept unchanged, even if it applies to no client.
        hosts=hosts if is_listed else list(map(parse_host, hosts)),
        resources=ResourceOptions(cluster=cluster, **named),
        pattern=_text(entry, "pattern"),
        job=_text(entry, "for"),
        inputs=_texts(entry, "input"),
    )


def _entry_of_listed_row(row: Mapping[object, object]) -> dict[object, object]:
    """Convert a row, as printed by `kctl acls list`, to an entry in the form of options.

    Errors: RulesNotClear.
    """
    if set(row) != _LISTED_KEYS:
        raise RulesNotClear(f"a listed rule has {', '.join(sorted(_LISTED_KEYS))}")
    permission = row["permission"]
    if permission not in ("allow", "deny"):
        raise RulesNotClear("permission is allow or deny")
    kind = str(row["resource_type"]).replace("-", "_")
    if kind not in _RESOURCES:
        raise RulesNotClear(f"no type of resource {kind}")
    return {
        permission: row["principal"],
        "hosts": row["host"],
        "operations": row["operation"],
        "pattern": row["pattern"],
        kind: True if kind == "cluster" else row["resource_name"],
    }


def _texts(entry: Mapping[object, object], key: str) -> list[str]:
    """Return the value of a key as a list of texts: one text as a list of one, [] if missing.

    Errors: RulesNotClear for a value of another type.
    """
    value = entry.get(key)
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    texts = [one for one in values if isinstance(one, str)]
    if len(texts) < len(values):
        raise RulesNotClear(f"{key} is a text or a list of texts: quote numbers")
    return texts


def _text(entry: Mapping[object, object], key: str) -> str | None:
    """Return the text of a key, None if the key is missing.

    Errors: RulesNotClear for a value of another type.
    """
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise RulesNotClear(f"{key} is a text")
    return value
