"""Failures as Kafka's tools print them: the names of Java's exceptions, and a trace without frames.

Source: ReassignPartitionsCommand.main, LeaderElectionCommand.mainNoExit; Errors for the names.
"""

from __future__ import annotations

from engine.errors import ApiError, EngineError

ADMIN_COMMAND_FAILED = "org.apache.kafka.server.common.AdminCommandFailedException"
ADMIN_OPERATION = "org.apache.kafka.server.common.AdminOperationException"
_ERRORS = "org.apache.kafka.common.errors"
_WAITED_FOR = "java.util.concurrent.ExecutionException"

#: Codes whose exceptions are not named by them.
_NAMED_OTHERWISE = {
    "UNKNOWN_SERVER_ERROR": "UnknownServerException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "CORRUPT_MESSAGE": "CorruptRecordException",
    "MESSAGE_TOO_LARGE": "RecordTooLargeException",
    "RECORD_LIST_TOO_LARGE": "RecordBatchTooLargeException",
    "KAFKA_STORAGE_ERROR": "KafkaStorageException",
}


class ToolFailure(EngineError):
    """A tool ends with an exception: the name of its class, a message, what caused it."""

    def __init__(self, java_class: str, message: str, *causes: str) -> None:
        super().__init__(message)
        self.java_class = java_class
        self.causes = causes

    def trace(self) -> str:
        """Return what Java prints of it, but for the places in Java's code."""
        lines = [f"{self.java_class}: {self}", *(f"Caused by: {cause}" for cause in self.causes)]
        return "".join(f"{line}\n" for line in lines)


class TerseFailure(EngineError):
    """A tool ends with a sentence alone."""


def java_text(error: EngineError) -> str:
    """Return an error as Java's toString tells it; what no broker answered counts as a timeout."""
    if not isinstance(error, ApiError):
        return f"{_ERRORS}.TimeoutException: {error}"
    return f"{_ERRORS}.{_class_name(error.name)}: {error.detail}"


def _class_name(code_name: str) -> str:
    if code_name in _NAMED_OTHERWISE:
        return _NAMED_OTHERWISE[code_name]
    stem = code_name.removesuffix("_EXCEPTION").removesuffix("_FAILED")
    if not stem.endswith("AUTHORIZATION"):
        stem = code_name.removesuffix("_EXCEPTION")
    return "".join(part.capitalize() for part in stem.split("_")) + "Exception"


def as_tool_failure(error: EngineError) -> ToolFailure:
    """Return the failure of a tool that waited for an answer and got this error."""
    if isinstance(error, ToolFailure):
        return error
    text = java_text(error)
    return ToolFailure(_WAITED_FOR, text, text)


def message_of(error: EngineError) -> str:
    """Return the message alone, as Java's getMessage does."""
    return error.detail if isinstance(error, ApiError) else str(error)
