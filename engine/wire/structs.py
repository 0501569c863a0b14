"""Classes of the messages: one slotted class per struct, the same for all versions of a message.

    Metadata = message_class("MetadataRequest")
    request = Metadata(topics=[Metadata.MetadataRequestTopic(name="clicks")])
    request.topics[0].name

Attributes are Kafka's field names in snake_case; each has Kafka's default. The classes of a
message's nested structs are attributes of its class, by Kafka's names.

| Kafka's type | value |
|---|---|
| bool, int*, uint*, float64, string | bool, int, float, str |
| uuid | 16 bytes; sixteen zeroes mean none |
| bytes | bytes |
| records | any buffer; decoding returns a memoryview of the decoded buffer |
| array | list (also for Kafka's keyed collections) |
| struct | an instance of its class |
| null | None |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from engine.wire.layout import NO_UUID, attribute_name
from engine.wire.schema import ENGINE_RELEASE, FieldSchema, MessageSchema, message_schema

#: A decoded message or one of its structs, for code in which the API is known only at run time.
#: The fields are those of its class in `engine.wire.messages`.
Message: TypeAlias = Any


class Struct:
    """A decoded message or one of its structs. Equal if class and all fields are equal."""

    __slots__: tuple[str, ...] = ()

    #: Name of the message that the struct belongs to, and the release of its schema.
    message_name: ClassVar[str] = ""
    release: ClassVar[str] = ""
    #: Defaults that all instances share, and makers of those that they must not share.
    shared_defaults: ClassVar[tuple[tuple[str, object], ...]] = ()
    fresh_defaults: ClassVar[tuple[tuple[str, Callable[[], object]], ...]] = ()

    if TYPE_CHECKING:
        # The fields are those of the message's schema, which type checkers do not see.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: object) -> None: ...

    # Shared, not generated per class: generating one costs as much as 500 calls of this.
    def __init__(self, **fields: object) -> None:
        """Set all fields; a field that `fields` lacks gets its default."""
        for name, value in self.shared_defaults:
            setattr(self, name, value)
        for name, make in self.fresh_defaults:
            if name not in fields:
                setattr(self, name, make())
        for name, value in fields.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Return True if the class and all fields are equal."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


def shared_default(field: FieldSchema) -> object:
    """Return a field's default that instances may share; not for arrays and structs."""
    if field.null_by_default:
        return None
    if field.type == "uuid":
        return NO_UUID
    if field.type == "bytes":
        return b""
    return field.default


def _make_class(schema: MessageSchema, name: str, made: dict[str, type[Struct]]) -> None:
    """Create the class of a struct; first those of the structs in its defaults must exist."""
    fields = schema.structs[name].fields
    shared: list[tuple[str, object]] = []
    fresh: list[tuple[str, Callable[[], object]]] = []
    for field in fields:
        attribute = attribute_name(field.name)
        if field.null_by_default or not (field.is_array or field.is_struct):
            shared.append((attribute, shared_default(field)))
        elif field.is_array:
            fresh.append((attribute, list))
        else:
            if field.type not in made:
                _make_class(schema, field.type, made)
            fresh.append((attribute, made[field.type]))
    body = {
        "__slots__": tuple(attribute_name(field.name) for field in fields),
        "__module__": __name__,
        "__doc__": f"`{name}` of Kafka's {schema.name}.",
        "message_name": schema.name,
        "release": schema.release,
        "shared_defaults": tuple(shared),
        "fresh_defaults": tuple(fresh),
    }
    made[name] = type(name, (Struct,), body)


@cache
def struct_classes(name: str, release: str = ENGINE_RELEASE) -> dict[str, type[Struct]]:
    """Return the classes of a message and of its nested structs, by Kafka's names."""
    schema = message_schema(name, release)
    made: dict[str, type[Struct]] = {}
    for struct_name in schema.structs:
        if struct_name not in made:
            _make_class(schema, struct_name, made)
    for struct_name, struct in made.items():
        if struct_name != name:
            setattr(made[name], struct_name, struct)
    return made


def message_class(name: str, release: str = ENGINE_RELEASE) -> type[Message]:
    """Return a message's class; raises UnknownMessage.

    The classes of its nested structs are its attributes.
    """
    return struct_classes(name, release)[name]
