"""Schemas from files: a folder of them by id, or one for all values.

```
FOLDER/7.avsc         Avro; it may refer to the types of .avsc files whose names are no number
FOLDER/7.proto        protobuf; it may import the other .proto files of the folder by name
FOLDER/7.json         a JSON Schema
FILE.avsc             one schema for values without an envelope; also FILE.proto:package.Message
```
"""

from __future__ import annotations

from engine.host.ports import Files
from engine.schemas.schema import NoSuchSchema, Schema, SchemaKind, UnusableSchema

_KINDS = {".avsc": SchemaKind.AVRO, ".proto": SchemaKind.PROTOBUF, ".json": SchemaKind.JSON}


class SchemaFolder:
    """Schemas in a folder; each file's name is the id of its schema."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path

    def schema(self, schema_id: int) -> Schema:
        """Return the schema in the file named by its id, with the other files that it may import.

        Raises NoSuchSchema without such a file, UnusableSchema.
        """
        names = self._files.list_dir(self._path)
        for extension, kind in _KINDS.items():
            name = f"{schema_id}{extension}"
            if name in names:
                others = [other for other in sorted(names) if _is_referred(other, extension)]
                references = tuple(
                    (other, _read_text(self._files, f"{self._path}/{other}")) for other in others
                )
                return Schema(kind, _read_text(self._files, f"{self._path}/{name}"), references)
        raise NoSuchSchema(schema_id, self._path)


def _is_referred(name: str, extension: str) -> bool:
    """Return True if schemas may import the file: it has their extension and no id as its name."""
    stem = name.removesuffix(extension)
    return name.endswith(extension) and not stem.isdigit()


def read_schema_file(files: Files, path: str) -> Schema:
    """Return the schema in one file; raises UnusableSchema for an unknown extension.

    `path` may be `PATH.proto:MESSAGE` to choose a message type of a Protobuf schema.
    """
    name, _, message = path.partition(".proto:")
    if message:
        path = f"{name}.proto"
    kind = next((kind for extension, kind in _KINDS.items() if path.endswith(extension)), None)
    if kind is None:
        raise UnusableSchema(path, f"its name must end in {', '.join(_KINDS)}")
    return Schema(kind, _read_text(files, path), message=message or None)


def _read_text(files: Files, path: str) -> str:
    """Return a schema file's text; raises UnusableSchema if it is no UTF-8."""
    try:
        return files.read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise UnusableSchema(path, "it is no UTF-8") from error
