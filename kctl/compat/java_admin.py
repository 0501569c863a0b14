"""Convert errors of requests to the exceptions of Java's admin client.

Source: KafkaAdminClient.Call.handleTimeoutFailure, Errors.exception of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from engine.client.errors import AuthenticationFailed, TimedOut, Unreachable
from engine.errors import ApiError, EngineError
from kctl.compat.java_failures import ToolFailure, as_java

TIMEOUT: Final = "org.apache.kafka.common.errors.TimeoutException"
#: Message of Java's client for a topic without a name.
UNNAMED_TOPIC: Final = "The given topic name '' cannot be represented in a request."
ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
_EXECUTION: Final = "java.util.concurrent.ExecutionException"


def admin_failure(error: EngineError, call: str) -> EngineError:
    """Return the failure that Java's admin client reports for an error of a call.

    An error without a Java counterpart is returned unchanged.
    """
    if isinstance(error, TimedOut | Unreachable):
        return ToolFailure(TIMEOUT, f"Timed out waiting for a node assignment. Call: {call}")
    if isinstance(error, ApiError | AuthenticationFailed):
        return as_java(error)
    return error


@contextmanager
def admin_call(name: str) -> Iterator[None]:
    """Convert errors raised in the block to those of an admin client's call.

    Errors: ToolFailure.
    """
    try:
        yield
    except EngineError as error:
        raise admin_failure(error, name) from error


def timed_out_text(call: str, now_ms: int, attempts: int) -> str:
    """Return the message of Java's client for a call that was retried until its time-out."""
    return (
        f"Call(callName={call}, deadlineMs={now_ms}, tries={attempts}, nextAllowedTryMs={now_ms}) "
        f"timed out at {now_ms} after {attempts} attempt(s)"
    )


def raise_first(results: dict[str, ApiError | None]) -> None:
    """Raise the first error of `results`, as the admin client of Java reports it, if any."""
    for error in results.values():
        if error is not None:
            raise admin_failure(error, "")


def as_execution_failure(failure: ToolFailure) -> ToolFailure:
    """Wrap a failure in an ExecutionException, as `KafkaFuture.get` does."""
    text = f"{failure.java_class}: {failure}"
    return ToolFailure(_EXECUTION, text, text)
