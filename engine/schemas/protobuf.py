"""Decode Protobuf values to plain ones, with Google's own compiler and runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.host.protobuf_compiler import NotProtobuf, compile_protobuf
from engine.schemas.envelope import split_message_indexes
from engine.schemas.schema import Schema, UnusableSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pool import DescriptorPool

_FILE = "schema.kctl.proto"


def make_protobuf_reader(
    schema: Schema, what: str, *, is_enveloped: bool, with_defaults: bool = False
) -> Callable[[bytes], object]:
    """Return a function that decodes Protobuf values of a schema; raises UnusableSchema.

    With `with_defaults`, missing fields appear with their defaults. Without an envelope and a
    message name, the schema's first message is used. The function raises ValueError for bytes that
    are not a valid message, or that JSON cannot express.
    """
    messages = protobuf_messages(schema, what, is_enveloped=is_enveloped)

    def read(content: bytes) -> object:
        """Return the decoded message; the envelope's indexes name its type."""
        if is_enveloped:
            indexes, content = _split_indexes(content)
            return _decode_message(_message_at(messages, indexes), content, with_defaults)
        return _decode_message(messages[0], content, with_defaults)

    return read


def protobuf_messages(schema: Schema, what: str, *, is_enveloped: bool) -> list[Descriptor]:
    """Return the descriptors of the message types of which values can be; raises UnusableSchema.

    With an envelope these are all outermost ones, as its indexes choose one; otherwise it is the
    one that the schema names, by default the first.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool

    files = descriptor_pb2.FileDescriptorSet.FromString(_compile_descriptors(schema, what))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    messages = list(pool.FindFileByName(_FILE).message_types_by_name.values())
    if not messages:
        raise UnusableSchema(what, "it has no message")
    if is_enveloped:
        return messages
    return messages[:1] if schema.message is None else [_find_message(pool, schema.message, what)]


def compiled(schema: Schema, what: str) -> Schema:
    """Return a Protobuf schema with its compiled descriptors; raises UnusableSchema.

    Compiled once, it needs no compiler where its values are decoded.
    """
    return schema._replace(descriptors=_compile_descriptors(schema, what))


def _find_message(pool: DescriptorPool, name: str, what: str) -> Descriptor:
    """Return the message type with a name; raises UnusableSchema."""
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        raise UnusableSchema(what, f"it has no message {name}") from None


def _split_indexes(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the message indexes of an envelope, and the remaining bytes; raises ValueError."""
    try:
        return split_message_indexes(content)
    except EngineError as error:
        raise ValueError(str(error)) from error


def _message_at(messages: list[Descriptor], indexes: tuple[int, ...]) -> Descriptor:
    """Return the message descriptor to which the indexes of an envelope lead.

    The first index is that of an outermost message, each next one that of a message nested in it.
    Raises ValueError if there is none.
    """
    level, message = messages, None
    for index in indexes:
        if not 0 <= index < len(level):
            raise ValueError(f"the schema has no message {'.'.join(map(str, indexes))}")
        message = level[index]
        level = list(message.nested_types)
    return message


def _decode_message(descriptor: Descriptor, content: bytes, with_defaults: bool) -> object:
    """Decode a message to JSON's types.

    Raises ValueError, also for a message without a JSON form.
    """
    from google.protobuf import json_format, message_factory
    from google.protobuf.message import DecodeError

    message = message_factory.GetMessageClass(descriptor)()
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        raise ValueError(f"not a {descriptor.full_name}: {error}") from error
    try:
        return json_format.MessageToDict(
            message,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=with_defaults,
        )
    except Exception as error:
        # Right bytes without a form in JSON: an Any of a type that the schema lacks, a Timestamp
        # beyond the year 9999, a FieldMask with capitals. Each raises what it likes.
        raise ValueError(f"a {descriptor.full_name} that cannot be shown: {error}") from error


def _compile_descriptors(schema: Schema, what: str) -> bytes:
    """Return the serialized FileDescriptorSet of a schema and all its imports.

    Raises UnusableSchema if the text is no Protobuf schema.
    """
    if schema.descriptors is not None:
        return schema.descriptors
    try:
        return compile_protobuf({**dict(schema.references), _FILE: schema.text}, _FILE)
    except NotProtobuf as error:
        raise UnusableSchema(what, f"it is no protobuf schema: {error}") from error
