"""The tree of errors: every failure is typed, carries fields, and builds its message from them.

```
EngineError
├─ ApiError        an answer with exactly one of Kafka's error codes
├─ WireError       a peer's bytes are wrong
├─ StorageError    a file or directory is wrong
├─ FencedError     someone newer has taken over
├─ ZnodeError      the metadata store refused
└─ ConfigError     a setting is wrong
InvariantBroken    a rule of our own is broken; never caught
```

Leaves are defined beside the code that raises them.
"""

from __future__ import annotations

import re

from engine.kafka_errors import kafka_error


class EngineError(Exception):
    """Base of every expected failure of the engine."""

    #: What to try next, shown by the command line under the message.
    hint: str | None = None


#: Kafka's refusal of a request shows Java's object: connection, session, buffer.
_JAVA_REQUEST = re.compile(r"\ARequest Request\(.*\) (?=is not|needs)", re.DOTALL)


class ApiError(EngineError):
    """An answer that carries one of Kafka's error codes; `detail` is the message as it came."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.name = kafka_error(code).name
        self.detail = message
        super().__init__(f"{self.name}: {_JAVA_REQUEST.sub('the request ', message)}")


def api_error(code: int, detail: str | None = None) -> ApiError:
    """Return the error of an answer; `detail` is the broker's own message, if it sent one."""
    return ApiError(code, detail or kafka_error(code).meaning)


class WireError(EngineError):
    """A peer's bytes do not follow the protocol."""


class StorageError(EngineError):
    """A file or directory is missing, damaged, or not of the expected kind."""


class CorruptRecord(StorageError):
    """Bytes of a log do not form a record batch or record.

    `position` is the byte position in `path` (or in the buffer when `path` is None) of the
    batch or field at fault; `expected` and `got` say what was looked for and what was there.
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
        """Return the same error placed in a file; positions inside a buffer are added up."""
        base = position or 0
        inner = self.position or 0
        placed = type(self).__new__(type(self))
        CorruptRecord.__init__(
            placed, self.expected, self.got, path=path or self.path, position=base + inner
        )
        placed.hint = self.hint
        return placed


class CorruptFile(StorageError):
    """A file beside the log (index, snapshot, checkpoint) does not follow its format."""

    def __init__(
        self, path: str, expected: str, got: object, *, position: int | None = None
    ) -> None:
        """`position` is the byte in the file at which it is wrong, None for the file as a whole."""
        self.path = path
        self.position = position
        self.expected = expected
        self.got = got
        at = f" at position {position}" if position is not None else ""
        super().__init__(f"{path}{at}: expected {expected}, got {got}")


class FencedError(EngineError):
    """Someone with a newer epoch has taken over."""


class ZnodeError(EngineError):
    """The metadata store refused an operation."""


class ConfigError(EngineError):
    """A setting has a value that its rule does not allow.

    `kafka_message` is what a broker of Kafka answers, where that does not follow from the rule.
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
    """A rule of the engine itself is broken: nothing may catch it."""
