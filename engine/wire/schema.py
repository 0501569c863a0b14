"""The schema of one message, parsed from the packed tables at its first use.

A message is text. Its first line, then one line per field (a nested field has one more leading
space than its parent), then the structs that several fields share:

```
<kind> <API key or -> <valid versions> <flexible versions> [unstable]
<Name> <type> <versions> [null=<versions>] [tag=<n>:<versions>] [default=<text>] [<flag>…]
 <NestedName> …
= <StructName> <versions>
<Name> …
```

| flag | meaning |
|---|---|
| kind | request, response, header, data, metadata (KRaft), key, value (coordinator records) |
| versions | `3`, `2-5`, `2+`, `none` |
| type | bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes records, |
|  | a struct's name, or `[]` before one of these |
| null | versions in which the field may be null |
| tag | its number and the versions in which it is a tagged field |
| plain | a string that never takes the compact form (the client id of a request header) |
| ignorable | versions without the field leave it out silently, with any value |
| mapKey | part of the key of a keyed collection; on the wire an array like others |
| unstable | the highest version may still change: brokers do not offer it |

Source: the message files in Kafka's jars (common/message/*.json) and their generator.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from engine.wire.errors import UnknownMessage

#: Releases whose tables are packed. The engine speaks the first unless a caller says otherwise.
Release: TypeAlias = Literal["3.9.1", "4.3.0"]
RELEASES: Final[tuple[Release, ...]] = ("3.9.1", "4.3.0")
ENGINE_RELEASE: Final[Release] = "3.9.1"

#: Above any version that fits in an int16.
UNBOUNDED: Final = 0x7FFF

INTEGER_TYPES: Final = frozenset(
    ("int8", "int16", "uint16", "int32", "uint32", "int64"),
)
PRIMITIVE_TYPES: Final = INTEGER_TYPES | frozenset(
    ("bool", "float64", "uuid", "string", "bytes", "records"),
)


class Versions(NamedTuple):
    """A range of versions, both ends inclusive; empty when `highest` is below `lowest`."""

    lowest: int
    highest: int

    def has(self, version: int) -> bool:
        """Return True if the range includes a version."""
        return self.lowest <= version <= self.highest

    @property
    def is_empty(self) -> bool:
        """Return True if the range includes no version."""
        return self.highest < self.lowest


NO_VERSIONS: Final = Versions(0, -1)


class FieldSchema(NamedTuple):
    """One field. `type` is the element's type for an array; `struct` names a struct's schema.

    `default` is the field's value when nothing is said: None, a number, a string, a bool. Arrays,
    bytes and structs that are not null by default are empty: `default` is then None too, and
    `null_by_default` is false. `tag` is -1 for a field that is never tagged.
    """

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: object
    null_by_default: bool
    plain: bool
    ignorable: bool
    map_key: bool

    @property
    def is_struct(self) -> bool:
        """Return True if the type, for an array that of the elements, is a struct."""
        return self.type not in PRIMITIVE_TYPES


class StructSchema(NamedTuple):
    """A struct's name, the versions that have it, and its fields in wire order.

    `shared` is True if it, or the struct around it, is defined by a `=` line.
    """

    name: str
    versions: Versions
    fields: tuple[FieldSchema, ...]
    shared: bool


class MessageSchema(NamedTuple):
    """One message: `structs` has its own struct and all nested ones, by name."""

    name: str
    release: str
    kind: str
    api_key: int
    valid: Versions
    flexible: Versions
    latest_unstable: bool
    structs: dict[str, StructSchema]

    @property
    def root(self) -> StructSchema:
        """Return the struct of the message itself."""
        return self.structs[self.name]


def parse_versions(text: str) -> Versions:
    """Return the range of versions in a text: `3`, `2-5`, `2+` or `none`."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), UNBOUNDED)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


def _parse_default(type_name: str, is_array: bool, text: str | None) -> object:
    """Return a field's default value; FieldSchema explains the meaning of None."""
    if is_array or text == "null":
        return None
    if type_name in INTEGER_TYPES:
        return int(text or "0", 0)
    if type_name == "string":
        return text or ""
    if type_name == "bool":
        return text == "true"
    if type_name == "float64":
        return float(text or "0")
    return None


def _parse_field(line: str) -> FieldSchema:
    """Return the schema in one field's line of the packed table."""
    name, type_text, versions, *options = line.split(" ")
    is_array = type_text.startswith("[]")
    type_name = type_text.removeprefix("[]")
    nullable = tagged = NO_VERSIONS
    tag = -1
    default: str | None = None
    flags = set()
    for option in options:
        key, _, value = option.partition("=")
        if key == "null":
            nullable = parse_versions(value)
        elif key == "tag":
            number, _, range_text = value.partition(":")
            tag, tagged = int(number), parse_versions(range_text)
        elif key == "default":
            default = value
        else:
            flags.add(key)
    return FieldSchema(
        name=name,
        type=type_name,
        is_array=is_array,
        versions=parse_versions(versions),
        nullable=nullable,
        tagged=tagged,
        tag=tag,
        default=_parse_default(type_name, is_array, default),
        # Records have no empty form: Kafka's generator lets them start as null.
        null_by_default=default == "null" or type_name == "records",
        plain="plain" in flags,
        ignorable="ignorable" in flags,
        map_key="mapKey" in flags,
    )


class _OpenStruct(NamedTuple):
    name: str
    versions: Versions
    fields: list[FieldSchema]


def parse_message(name: str, release: str, text: str) -> MessageSchema:
    """Return the schema in one message's text of the packed table.

    The module's docstring shows the form of the text.
    """
    head, *lines = text.splitlines()
    kind, key, valid, flexible, *flags = head.split(" ")
    structs: dict[str, StructSchema] = {}
    # The open struct at each depth: its name, versions and the fields so far.
    path = [_OpenStruct(name, parse_versions(valid), [])]

    def close(depth: int) -> None:
        """Complete the open structs below `depth`; those of a `=` line are common structs."""
        shared = path[0].name != name
        while len(path) > depth:
            struct_name, versions, fields = path.pop()
            structs[struct_name] = StructSchema(struct_name, versions, tuple(fields), shared)

    for line in lines:
        if line.startswith("= "):
            close(0)
            _, struct_name, versions_text = line.split(" ")
            path.append(_OpenStruct(struct_name, parse_versions(versions_text), []))
            continue
        depth = len(line) - len(line.lstrip(" "))
        if depth == len(path):
            parent = path[-1].fields[-1]
            path.append(_OpenStruct(parent.type, parent.versions, []))
        close(depth + 1)
        path[-1].fields.append(_parse_field(line[depth:]))
    close(0)
    return MessageSchema(
        name=name,
        release=release,
        kind=kind,
        api_key=-1 if key == "-" else int(key),
        valid=parse_versions(valid),
        flexible=parse_versions(flexible),
        latest_unstable="unstable" in flags,
        structs=structs,
    )


def _schema_text(name: str, release: str) -> str | None:
    """Return a message's schema text, None if the release has no such message."""
    # Imported here, so that a command loads the newer tables only if it uses them.
    from engine.wire.tables import kafka_3_9_1 as base

    if release == "3.9.1":
        return base.MESSAGES.get(name)
    from engine.wire.tables import kafka_4_3_0 as newer

    if name in newer.GONE:
        return None
    return newer.MESSAGES.get(name) or base.MESSAGES.get(name)


def api_names(release: str = ENGINE_RELEASE) -> dict[int, str]:
    """Return the names of a release's APIs, without `Request`, by key."""
    if release == "3.9.1":
        from engine.wire.tables import kafka_3_9_1 as base

        return base.API_NAMES
    from engine.wire.tables import kafka_4_3_0 as newer

    return newer.API_NAMES


def schema_head(name: str, release: str = ENGINE_RELEASE) -> list[str]:
    """Return the tokens of a message's first line without parsing its fields.

    Raises UnknownMessage. Commands that need only versions do not parse whole tables.
    """
    text = _schema_text(name, release)
    if text is None:
        raise UnknownMessage(name, release)
    return text[: text.index("\n")].split(" ")


@cache
def message_schema(name: str, release: str = ENGINE_RELEASE) -> MessageSchema:
    """Return a message's schema in a release; raises UnknownMessage."""
    text = _schema_text(name, release) if release in RELEASES else None
    if text is None:
        raise UnknownMessage(name, release)
    return parse_message(name, release, text)


def message_names(release: str = ENGINE_RELEASE) -> tuple[str, ...]:
    """Return the names of all messages of a release, sorted."""
    from engine.wire.tables import kafka_3_9_1 as base

    if release == "3.9.1":
        return tuple(sorted(base.MESSAGES))
    from engine.wire.tables import kafka_4_3_0 as newer

    return tuple(sorted((set(base.MESSAGES) - newer.GONE) | set(newer.MESSAGES)))
