"""The error classes: every failure has a type and fields, from which its message is built.

```
EngineError
├─ ApiError        a response with one of Kafka's error codes
├─ WireError       invalid bytes from a peer
├─ StorageError    an invalid or missing file or directory
├─ FencedError     fenced by a newer epoch
├─ ZnodeError      an operation rejected by the metadata store
└─ ConfigError     an invalid setting
InvariantBroken    a broken invariant of the engine; never caught
```

Subclasses are defined next to the code that raises them.
"""

from __future__ import annotations

import re

from engine.kafka_errors import kafka_error


class EngineError(Exception):
    """Base class of every expected failure of the engine."""

    #: A suggestion for the user, which the command line shows below the message.
    hint: str | None = None


#: Kafka's error message for a request contains the Java object: connection, session, buffer.
_JAVA_REQUEST = re.compile(r"\ARequest Request\(.*\) (?=is not|needs)", re.DOTALL)


class ApiError(EngineError):
    """A response with one of Kafka's error codes; `detail` is the broker's unchanged message."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.name = kafka_error(code).name
        self.detail = message
        super().__init__(f"{self.name}: {_JAVA_REQUEST.sub('the request ', message)}")


def api_error(code: int, detail: str | None = None) -> ApiError:
    """Return the error for an error code in a response.

    `detail` is the broker's message; without one it is the meaning of the code.
    """
    return ApiError(code, detail or kafka_error(code).meaning)


class WireError(EngineError):
    """A peer's bytes do not follow the protocol."""


class StorageError(EngineError):
    """A file or directory is missing, damaged, or of another kind than expected."""


class CorruptRecord(StorageError):
    """Bytes of a log do not form a record batch or record.

    `position` is the byte position of the faulty batch or field in `path`, or in the buffer if
    `path` is None; `expected` and `got` describe what should be there and what is.
    """

    def __init__(
        self, expected: str, got: object, *, path: str | None = None, position: int | None = None
    ) -> None:
        self.path = path
        self.position = position
        self.expected = expected
        self.got = got
        where = path or "record data"
        at = f" at position {position}" if position is not None else ""
        super().__init__(f"{where}{at}: expected {expected}, got {got}")

    def at(self, path: str | None, position: int | None) -> CorruptRecord:
        """Return a copy of the error with the path of the file in which the bytes are.

        `position` is where the buffer begins in the file: it is added to the position in the
        buffer. None for either leaves it as it is.
        """
        base = position or 0
        inner = self.position or 0
        placed = type(self).__new__(type(self))
        CorruptRecord.__init__(
            placed, self.expected, self.got, path=path or self.path, position=base + inner
        )
        placed.hint = self.hint
        return placed


class CorruptFile(StorageError):
    """A file other than the log (index, snapshot, checkpoint) does not follow its format."""

    def __init__(
        self, path: str, expected: str, got: object, *, position: int | None = None
    ) -> None:
        """Create the error; `position` is the faulty byte, None for the file as a whole."""
        self.path = path
        self.position = position
        self.expected = expected
        self.got = got
        at = f" at position {position}" if position is not None else ""
        super().__init__(f"{path}{at}: expected {expected}, got {got}")


class FencedError(EngineError):
    """An instance with a newer epoch has replaced this one."""


class ZnodeError(EngineError):
    """The metadata store rejected an operation."""


class ConfigError(EngineError):
    """A setting has a value that its rule does not allow.

    `kafka_message` is the message of a Kafka broker, if it does not follow from the rule.
    """

    def __init__(
        self, key: str, value: object, rule: str, *, kafka_message: str | None = None
    ) -> None:
        super().__init__(f"{key}={value}: {rule}")
        self.key = key
        self.value = value
        self.rule = rule
        self.kafka_message = kafka_message


class InvariantBroken(AssertionError):
    """An invariant of the engine is broken; no code may catch this error."""
