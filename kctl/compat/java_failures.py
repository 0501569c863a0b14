"""Failures as Kafka's tools print them: Java's exception names, and a trace without frames.

Source: ReassignPartitionsCommand.main, LeaderElectionCommand.mainNoExit; Errors for the names.
"""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

from engine.client.errors import (
    AuthenticationFailed,
    MechanismNotOffered,
    NoCommonVersion,
    SaslNotExpected,
)
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import (
    GROUP_MAX_SIZE_REACHED,
    INVALID_GROUP_ID,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
    kafka_error,
)
from kctl.compat.releases import Release
from kctl.guard_errors import GUARD_ERRORS

ADMIN_COMMAND_FAILED = "org.apache.kafka.server.common.AdminCommandFailedException"
ADMIN_OPERATION = "org.apache.kafka.server.common.AdminOperationException"
#: Exceptions that 4.3.0 has moved to the package of its tools.
_MOVED_IN_FOUR = {
    name: f"org.apache.kafka.tools.{name.rpartition('.')[2]}"
    for name in (ADMIN_COMMAND_FAILED, ADMIN_OPERATION)
}
_ERRORS = "org.apache.kafka.common.errors"
#: Lines of code, class and message: from Errors of 3.9.1, with the codes added in 4.3.0.
_ERRORS_TABLE = os.path.join(os.path.dirname(__file__), "java_errors.tsv")
#: Messages that differ in 4.3.0, by code.
_MESSAGES_OF_FOUR = {
    INVALID_GROUP_ID: "The group id is invalid.",
    GROUP_MAX_SIZE_REACHED: "The group has reached its maximum size.",
}
#: Release of the tool that runs in the current context.
_release: ContextVar[Release] = ContextVar("release", default=Release.V3_9)
_WAITED_FOR = "java.util.concurrent.ExecutionException"


class JavaError(NamedTuple):
    """The Java exception of an error code: class name, and default message."""

    class_name: str
    message: str


@cache
def _java_errors() -> dict[int, JavaError]:
    """Return the Java exception of each error code, as Kafka's Errors lists them."""
    with open(_ERRORS_TABLE, encoding="utf-8") as table:
        rows = [line.rstrip("\n").split("\t") for line in table]
    return {int(code): JavaError(class_name, message) for code, class_name, message in rows}


class ToolFailure(EngineError):
    """A tool fails with a Java exception: its class name, message and causes."""

    def __init__(self, java_class: str, message: str, *causes: str) -> None:
        super().__init__(message)
        moved = _MOVED_IN_FOUR.get(java_class) if _release.get().is_four else None
        self.java_class = moved or java_class
        self.causes = causes

    def trace(self) -> str:
        """Return the stack trace as Java prints it, without its frames."""
        lines = [f"{self.java_class}: {self}", *(f"Caused by: {cause}" for cause in self.causes)]
        return "".join(f"{line}\n" for line in lines)


class TerseFailure(EngineError):
    """A tool fails with a message without a trace."""


def with_api_code(error: EngineError) -> EngineError:
    """Return UNSUPPORTED_VERSION for an API that the broker lacks, another error unchanged.

    Java's client reports that code without sending a request.
    """
    if not isinstance(error, NoCommonVersion) or error.theirs is not None:
        return error
    api_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.api).upper()
    return api_error(UNSUPPORTED_VERSION, f"The node does not support {api_name}")


def java_text(error: EngineError) -> str:
    """Return an error as the toString of the corresponding Java exception prints it.

    Without a response from a broker it is a TimeoutException.
    """
    error = with_api_code(error)
    if not isinstance(error, ApiError):
        return f"{_class_without_code(error)}: {message_of(error)}"
    return f"{java_class(error)}: {message_of(error)}"


def set_message_release(release: Release) -> None:
    """Set the release whose error messages tools print, for the current context (contextvars)."""
    _release.set(release)


def has_messages_of_four() -> bool:
    """Return True if the current context uses the error messages of 4.3.0."""
    return _release.get().is_four


def java_class(error: ApiError) -> str:
    """Return the full name of the Java exception of an error code."""
    return f"{_ERRORS}.{_java_error(error.code).class_name}"


def _java_error(code: int) -> JavaError:
    """Return the Java exception of an error code, UnknownServerException for an unknown code."""
    errors = _java_errors()
    return errors.get(code, errors[UNKNOWN_SERVER_ERROR])


def as_tool_failure(error: EngineError) -> ToolFailure:
    """Return an error as the ExecutionException that Java's Future.get throws for it."""
    if isinstance(error, ToolFailure):
        return error
    text = java_text(error)
    return ToolFailure(_WAITED_FOR, text, text)


def message_of(error: EngineError) -> str:
    """Return an error's message, as getMessage of the corresponding Java exception does."""
    if isinstance(error, AuthenticationFailed):
        return _refused_login(error)[1]
    if not isinstance(error, ApiError):
        return str(error)
    has_own_message = error.detail != kafka_error(error.code).meaning
    if has_own_message:
        return error.detail
    message = _java_error(error.code).message
    return _MESSAGES_OF_FOUR.get(error.code, message) if has_messages_of_four() else message


def as_java(error: EngineError) -> ToolFailure:
    """Return an error as the corresponding Java exception; raises errors of a context's guards."""
    if isinstance(error, GUARD_ERRORS):
        raise error
    if isinstance(error, ToolFailure):
        return error
    if isinstance(error, ApiError):
        return ToolFailure(java_class(error), message_of(error))
    return ToolFailure(_class_without_code(error), message_of(error))


def _class_without_code(error: EngineError) -> str:
    """Return the full name of the Java exception of an error without a code."""
    if isinstance(error, AuthenticationFailed):
        return f"{_ERRORS}.{_refused_login(error)[0]}"
    return f"{_ERRORS}.TimeoutException"


def _refused_login(error: AuthenticationFailed) -> tuple[str, str]:
    """Return class and message of the exception that Java's client throws for a failed login."""
    name = error.mechanism
    if isinstance(error, SaslNotExpected):
        words = f"Unexpected handshake request with client mechanism {name}"
        return "IllegalSaslStateException", f"{words}, enabled mechanisms are []"
    if isinstance(error, MechanismNotOffered):
        words = f"Client SASL mechanism '{name}' not enabled in the server"
        offered = ", ".join(error.offered)
        return "UnsupportedSaslMechanismException", f"{words}, enabled mechanisms are [{offered}]"
    return "SaslAuthenticationException", error.reason
