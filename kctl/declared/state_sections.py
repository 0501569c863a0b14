"""Converts the documents of files to the declared state; every error names file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Final, TypeVar

from engine.declared.resources import (
    ALL_BROKERS,
    DeclaredPassword,
    DeclaredState,
    DeclaredTopic,
    DeclaredUser,
    Entity,
    Placement,
    ResourceKind,
    Settings,
)
from engine.declared.step_making import DEFAULT_NAME, entity_text
from engine.errors import EngineError
from engine.naming import validate_topic
from engine.security.acls import AclBinding
from engine.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism
from kctl.arguments import UnreadableArgument
from kctl.commands.acls.rules_file import entry_rules
from kctl.commands.acls.wanted_rules import RulesNotClear
from kctl.commands.quotas.amounts import CONNECTIONS, parse_amount, parse_quota
from kctl.commands.quotas.entities import DEFAULT
from kctl.commands.users.credentials import parse_mechanism
from kctl.declared.state_schema import (
    ACL,
    BROKER,
    DOCUMENT,
    EXTENSION,
    KEEP,
    QUOTA,
    TOPIC,
    USER,
    VERSION,
    keys_of,
)
from kctl.declared.variables import variable_of
from kctl.declared.yaml_nodes import YamlValue
from kctl.hints import did_you_mean
from kctl.schemas import Schema

V = TypeVar("V")
_ENTITY_KEYS: Final = {"user": "user", "client_id": "client-id", "ip": "ip"}


class _Sections:
    """The state that the documents read so far declare, with the place of each declaration."""

    def __init__(self) -> None:
        """Begin a declared state, to which documents are added."""
        #: Kinds of resources that any document declares, also with an empty section.
        self.kinds: set[ResourceKind] = set()
        self.topics: dict[str, DeclaredTopic] = {}
        self.users: dict[str, DeclaredUser] = {}
        self.acls: set[AclBinding] = set()
        self.quotas: dict[Entity, Mapping[str, float]] = {}
        self.brokers: dict[str, Settings] = {}
        #: Patterns of undeclared topics that must be kept.
        self.kept_topics: list[str] = []
        #: File and line of each declared resource, for the error of a second declaration.
        self._places: dict[tuple[ResourceKind, object], str] = {}

    def declare(self, kind: ResourceKind, name: object, label: str, value: YamlValue) -> None:
        """Note where a resource is declared; raises BadStateFile if it is declared twice.

        `label` is its name in the message.
        """
        before = self._places.get((kind, name))
        if before is not None:
            raise value.fault(f"{kind.value}: {label} is declared twice: first at {before}")
        self._places[kind, name] = value.where


def parse_declared_state(documents: Iterable[YamlValue]) -> DeclaredState:
    """Return the state that all documents declare together; raises BadStateFile."""
    sections = _Sections()
    for document in documents:
        _read_document(document, sections)
    return DeclaredState(
        kinds=frozenset(sections.kinds),
        topics=sections.topics,
        users=sections.users,
        acls=frozenset(sections.acls),
        quotas=sections.quotas,
        brokers=sections.brokers,
        kept_topics=tuple(sections.kept_topics),
    )


def document_contexts(document: YamlValue) -> list[str] | None:
    """Return the contexts that a document applies to, None for all; raises BadStateFile."""
    contexts = document.mapping("a document").get("contexts")
    if contexts is None:
        return None
    names = [name.text("a context") for name in contexts.items("contexts")]
    if not names:
        raise contexts.fault("contexts names none", "leave it out: the document counts for all")
    return names


def _read_document(document: YamlValue, sections: _Sections) -> None:
    """Add what one document declares to `sections`.

    Errors: BadStateFile, also for unknown keys or another version.
    """
    fields = document.mapping("a document")
    fields = {key: value for key, value in fields.items() if not key.startswith(EXTENSION)}
    _check_keys(fields, DOCUMENT, document)
    version = fields.get("version")
    if version is None:
        raise document.fault("there is no version", f"write `version: {VERSION}` at the top")
    if version.text("version") != str(VERSION):
        raise version.fault(f"version {version.text('version')} is not known here: {VERSION} is")
    keep = fields.get("keep")
    if keep is not None:
        sections.kept_topics += _parse_kept_topics(keep)
    for kind in ResourceKind:
        section = fields.get(kind.value)
        if section is not None:
            sections.kinds.add(kind)
            _READERS[kind](section, sections)


def _check_keys(fields: Mapping[str, YamlValue], shape: Schema, at: YamlValue) -> None:
    """Raise BadStateFile for a key that the schema `shape` does not allow.

    The hint has the most similar key.
    """
    allowed = keys_of(shape)
    for key, value in fields.items():
        if key not in allowed:
            there = f"there are {', '.join(sorted(allowed))}"
            hint = " ".join(filter(None, (did_you_mean(key, allowed), there)))
            raise value.fault(f"there is no key {key} here", hint)


def _parse_kept_topics(keep: YamlValue) -> list[str]:
    """Return the regular expressions of topics to keep; raises BadStateFile."""
    fields = keep.mapping("keep")
    _check_keys(fields, KEEP, keep)
    patterns = []
    for value in fields["topics"].items("topics") if "topics" in fields else ():
        pattern = value.text("a regular expression")
        try:
            re.compile(pattern)
        except re.error as error:
            raise value.fault(f"{pattern!r} is no regular expression: {error}") from error
        patterns.append(pattern)
    return patterns


# -- topics


def _read_topics(section: YamlValue, sections: _Sections) -> None:
    """Add the topics of a document's section `topics` to `sections`; raises BadStateFile."""
    for name, value in section.mapping("topics").items():
        try:
            validate_topic(name)
        except EngineError as error:
            raise value.fault(f"topics: {error}") from error
        sections.declare(ResourceKind.TOPICS, name, name, value)
        sections.topics[name] = _parse_topic(name, value)


def _parse_topic(name: str, value: YamlValue) -> DeclaredTopic:
    """Return a declared topic; raises BadStateFile if placement and counts contradict."""
    fields = value.mapping(f"topic {name}")
    _check_keys(fields, TOPIC, value)
    placement = _parse_placement(fields["placement"]) if "placement" in fields else ()
    counts = {
        key: fields[key].int32(key) if key in fields else None
        for key in ("partitions", "replication_factor")
    }
    partitions, factor = counts["partitions"], counts["replication_factor"]
    if placement and partitions not in (None, len(placement)):
        raise fields["placement"].fault(
            f"placement has {len(placement)} partitions, and partitions is {partitions}"
        )
    if placement and factor is not None and any(len(row) != factor for row in placement):
        raise fields["placement"].fault(f"placement has not {factor} replicas of each partition")
    return DeclaredTopic(
        partitions, None if placement else factor, placement, _parse_settings(fields)
    )


def _parse_placement(value: YamlValue) -> Placement:
    """Return the replicas of each partition; raises BadStateFile."""
    rows = []
    for row in value.items("placement"):
        ids = tuple(id_.int32("a broker", lowest=0) for id_ in row.items("a list of brokers"))
        if not ids or len(set(ids)) < len(ids):
            raise row.fault("a partition has one broker or several, none twice")
        rows.append(ids)
    if not rows:
        raise value.fault("placement has no partition")
    return tuple(rows)


def _parse_settings(fields: Mapping[str, YamlValue]) -> dict[str, str | None]:
    """Return the declared settings of a topic or broker; None means that a key must not be set."""
    value = fields.get("settings")
    if value is None:
        return {}
    return {name: _setting_text(name, one) for name, one in value.mapping("settings").items()}


def _setting_text(name: str, value: YamlValue) -> str | None:
    """Return the value of a setting as text; a list is joined by commas. None for null."""
    if value.is_null:
        return None
    if value.is_list:
        return ",".join(part.text(name) for part in value.items(name))
    return value.text(name)


# -- brokers


def _read_brokers(section: YamlValue, sections: _Sections) -> None:
    """Add the broker settings of a document's section `brokers`; raises BadStateFile."""
    for name, value in section.mapping("brokers").items():
        if name != DEFAULT_NAME and not (name.isascii() and name.isdecimal()):
            raise value.fault(f"brokers: {name!r} is neither a number nor {DEFAULT_NAME}")
        fields = value.mapping(f"broker {name}")
        _check_keys(fields, BROKER, value)
        broker = ALL_BROKERS if name == DEFAULT_NAME else str(int(name))
        sections.declare(ResourceKind.BROKERS, broker, name, value)
        sections.brokers[broker] = _parse_settings(fields)


# -- users


def _read_users(section: YamlValue, sections: _Sections) -> None:
    """Add the users of a document's section `users`; raises BadStateFile.

    A user without mechanisms has SCRAM-SHA-512.
    """
    for name, value in section.mapping("users").items():
        if not name or name.startswith("User:"):
            raise value.fault(f"users: {name!r}: a name without User:")
        fields = value.mapping(f"user {name}")
        _check_keys(fields, USER, value)
        sections.declare(ResourceKind.USERS, name, name, value)
        sections.users[name] = DeclaredUser(
            _parse_mechanisms(fields["mechanisms"])
            if "mechanisms" in fields
            else {ScramMechanism.SCRAM_SHA_512: None},
            _parse_password(fields["password"]) if "password" in fields else None,
        )


def _parse_mechanisms(value: YamlValue) -> dict[ScramMechanism, int | None]:
    """Return the iterations of each SCRAM mechanism, None for the default; at least one mechanism.

    Errors: BadStateFile.
    """
    found: dict[ScramMechanism, int | None] = {}
    if value.is_mapping:
        named = list(value.mapping("mechanisms").items())
    else:
        named = [(name.text("a mechanism"), name) for name in value.items("mechanisms")]
    for name, count in named:
        mechanism = _mechanism(name, count)
        if mechanism in found:
            raise count.fault(f"{mechanism.key} is there twice")
        has_count = value.is_mapping and not count.is_null
        found[mechanism] = _parse_iterations(count) if has_count else None
    if not found:
        raise value.fault("mechanisms names none")
    return found


def _mechanism(name: str, value: YamlValue) -> ScramMechanism:
    """Return the SCRAM mechanism with a name; raises BadStateFile for an unknown one.

    `value` is its place in the file.
    """
    mechanism = _with_place_of_fault(value, parse_mechanism, name)
    assert mechanism is not None
    return mechanism


def _parse_iterations(value: YamlValue) -> int:
    """Return a number of SCRAM iterations within Kafka's bounds; raises BadStateFile."""
    count = value.int32("iterations", lowest=ITERATIONS_MIN)
    if count > ITERATIONS_MAX:
        raise value.fault(f"iterations are at most {ITERATIONS_MAX}")
    return count


def _parse_password(value: YamlValue) -> DeclaredPassword:
    """Return the environment variable of a password, and its value, None if that is not set.

    Errors: BadStateFile for a password in the file itself.
    """
    variable = variable_of(value.written("password"))
    if variable is None:
        hint = "files are kept and shared: write `password: ${NAME}`, and export NAME"
        raise value.fault("password is no ${NAME} of the environment", hint)
    return DeclaredPassword(variable, value.variable(variable))


# -- access rules, quotas


def _read_acls(section: YamlValue, sections: _Sections) -> None:
    """Add the ACLs of all entries of a document's section `acls`; raises BadStateFile."""
    for value in section.items("acls"):
        _check_keys(value.mapping("an entry of acls"), ACL, value)
        sections.acls.update(_with_place_of_fault(value, entry_rules, value.plain()))


def _read_quotas(section: YamlValue, sections: _Sections) -> None:
    """Add the quotas of a document's section `quotas`.

    Errors: BadStateFile, also for a limit that its entity cannot have.
    """
    for value in section.items("quotas"):
        fields = value.mapping("an entry of quotas")
        _check_keys(fields, QUOTA, value)
        entity = _parse_entity(fields, value)
        sections.declare(ResourceKind.QUOTAS, entity, entity_text(entity), value)
        if "limits" not in fields:
            raise value.fault(f"quotas: {entity_text(entity)} has no limits")
        is_address = entity[0][0] == "ip"
        limits: dict[str, float] = {}
        for quota_name, amount in fields["limits"].mapping("limits").items():
            quota = _with_place_of_fault(amount, parse_quota, quota_name)
            if (quota == CONNECTIONS) != is_address:
                of = "an address" if quota == CONNECTIONS else "users and client ids"
                raise amount.fault(f"{quota} is a quota of {of}")
            if quota in limits:
                raise amount.fault(f"{quota} is there twice")
            limits[quota] = _with_place_of_fault(amount, _amount, quota, amount.text(quota))
            if not isfinite(limits[quota]):
                raise amount.fault(f"{quota} is a finite number, and no {amount.text(quota)}")
        sections.quotas[entity] = limits


def _amount(quota: str, text: str) -> float:
    """Return the amount of a quota: a number, or a text with a unit; raises UnreadableArgument."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text.strip(), re.ASCII):
        return float(text)
    return parse_amount(quota, text)


def _parse_entity(fields: Mapping[str, YamlValue], value: YamlValue) -> Entity:
    """Return whose quota an entry of `quotas` is, as (kind, name) pairs.

    A name None is the default entity. Errors: BadStateFile for nobody, or an impossible
    combination.
    """
    entity = tuple(
        (kind, None if (name := fields[key].text(key)) == DEFAULT else name)
        for key, kind in _ENTITY_KEYS.items()
        if key in fields
    )
    if not entity or any(name == "" for _, name in entity):
        raise value.fault("whose quotas? Give user, client_id, both, or ip")
    if len(entity) > 1 and "ip" in fields:
        raise value.fault("quotas of an address have neither user nor client_id")
    return entity


def _with_place_of_fault(value: YamlValue, read: Callable[..., V], *arguments: object) -> V:
    """Return the result of `read`, whose errors become BadStateFile with the place of `value`."""
    try:
        return read(*arguments)
    except (UnreadableArgument, RulesNotClear) as error:
        raise value.fault(str(error), error.hint) from error


_READERS: Final[Mapping[ResourceKind, Callable[[YamlValue, _Sections], None]]] = {
    ResourceKind.BROKERS: _read_brokers,
    ResourceKind.TOPICS: _read_topics,
    ResourceKind.USERS: _read_users,
    ResourceKind.QUOTAS: _read_quotas,
    ResourceKind.ACLS: _read_acls,
}
