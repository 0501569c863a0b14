"""The kind of values of an option or argument, for completion, derived from its help.

| kind | values | from |
|---|---|---|
| `words a b` | `a`, `b` | the help, which names all of them |
| `topic-keys`, `broker-keys` | settings | the tables of settings |
| `client-keys`, `producer-keys`, `consumer-keys` | settings | keys that commands accept as `-X` |
| `config-keys` | topic or broker settings | the other words of the line |
| `topics`, `groups`, `contexts`, `zookeepers` | the existing ones | `completion_live.py` |
| `outputs` | nouns, then verbs, that have a JSON schema | `completion_live.py` |
| `files`, `folders` | | the shell |
| `none` | no values | |

A kind that ends with `=` completes keys, after which a value follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer.core import TyperArgument, TyperOption

#: Kinds whose values depend on files, a cluster or the other words of the line.
LIVE = ("topics", "groups", "contexts", "zookeepers", "outputs")
NONE = "none"
_ENUMERATED = ("FORMAT", "CODEC", "ACKS", "SHELL", "LEVEL", "KIND")
#: Words in help texts that are values; other words are prose.
_VALUES = frozenset(
    (
        *("table", "wide", "json", "ndjson", "yaml", "csv", "name", "text", "raw"),
        *("markdown", "html", "tsv", "parquet", "lines", "value"),
        *("none", "gzip", "snappy", "lz4", "zstd", "0", "1", "all"),
        *("bash", "zsh", "fish", "read_committed", "read_uncommitted"),
        *("topics", "users", "acls", "quotas", "brokers"),
    )
)
_BY_OPTION = {
    "--context": "contexts",
    "--topic": "topics",
    "--group": "groups",
    "--zookeeper": "zookeepers",
}
_KEYS = {"topics": "topic-keys", "configs": "config-keys"}
#: Kinds of settings that do not depend on the other words of the line.
KEY_KINDS = ("topic-keys", "broker-keys", "client-keys", "producer-keys", "consumer-keys")
_CLIENT_KEYS = {"produce": "producer-keys", "consume": "consumer-keys"}
#: Commands that create names, so that existing names are no candidates.
_NEW_NAMES = ("topics create",)


def kind_of(path: str, parameter: TyperArgument | TyperOption) -> str:
    """Return which kind of values completes an option or argument, such as `topics`.

    It is recognized by its name and metavar.
    """
    metavar = (parameter.metavar or "").lstrip("[")
    for option in parameter.opts:
        if option in _BY_OPTION:
            return _BY_OPTION[option]
    if metavar.rstrip("].") in _ENUMERATED:
        words = re.findall(r"[a-z0-9_]+", parameter.help or "")
        values = list(dict.fromkeys(word for word in words if word in _VALUES))
        return f"words {' '.join(values)}" if values else NONE
    if metavar.startswith("NOUN"):
        return "outputs"
    if metavar.startswith("TOPIC"):
        return NONE if path in _NEW_NAMES else "topics"
    if metavar == "NAME" and path.startswith("context "):
        return "contexts"
    if any(option.endswith("-X") for option in parameter.opts):
        return f"{_CLIENT_KEYS.get(path, 'client-keys')}="
    if metavar.startswith("KEY"):
        keys = _KEYS.get(path.partition(" ")[0], "broker-keys")
        return f"{keys}=" if "=" in metavar else keys
    if metavar.startswith("FILE"):
        return "files"
    return "folders" if metavar.startswith("DIR") else NONE


def keys_of(kind: str) -> list[str]:
    """Return the names of settings of a kind in `KEY_KINDS`, such as `topic-keys`, sorted."""
    from engine.client.settings import CLIENT_KEYS
    from engine.config.key import broker_keys, topic_keys
    from kctl.commands.consume.settings import CONSUMER_KEYS, GROUP_KEYS
    from kctl.commands.produce.request import PRODUCER_KEYS

    if kind == "topic-keys":
        return sorted(topic_keys())
    if kind == "broker-keys":
        return sorted(broker_keys())
    own = {"producer-keys": PRODUCER_KEYS, "consumer-keys": (*CONSUMER_KEYS, *GROUP_KEYS)}
    return sorted({*CLIENT_KEYS, *own.get(kind, ())})
