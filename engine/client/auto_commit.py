"""Automatic commits of a consumer: their errors are logged, except for one that is raised.

The application does not call these commits: after an error the next commit is made at its time.

| error | then |
|---|---|
| FENCED_INSTANCE_ID | raised: another process has taken over the static member |
| retriable, or UNKNOWN_TOPIC_OR_PARTITION of a deleted topic | logged as debug |
| any other | logged as a warning |

Source: GRP-14; ConsumerCoordinator.autoCommitOffsetsAsync and
invokeCompletedOffsetCommitCallbacks of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.client.errors import may_pass
from engine.errors import ApiError, EngineError
from engine.kafka_errors import FENCED_INSTANCE_ID
from engine.model import TopicPartition

_LOGGER_OF_TROUBLE: Final = "org.apache.kafka.clients.consumer.KafkaConsumer"
_LOGGER: Final = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


def commit_automatically(
    commit: Callable[[], None], group_id: str, offsets: Mapping[TopicPartition, int]
) -> bool:
    """Run `commit`; return True if it succeeded.

    Its error is logged, not raised. So an automatic commit that fails does not end the
    application's poll: the next one repeats it. `group_id` and `offsets` are for the log alone.
    Raises ApiError FENCED_INSTANCE_ID.
    """
    try:
        commit()
    except EngineError as error:
        if isinstance(error, ApiError) and error.code == FENCED_INSTANCE_ID:
            raise
        _log_failure(group_id, offsets, error)
        return False
    return True


def log_trouble(what: str, error: EngineError) -> None:
    """Log the error of an action that the consumer repeats; `what` names the action."""
    import logging  # as in `_log_failure`

    logging.getLogger(_LOGGER_OF_TROUBLE).warning("%s failed, and is tried again: %s", what, error)


def _log_failure(group_id: str, offsets: Mapping[TopicPartition, int], error: EngineError) -> None:
    """Log a failed automatic commit of `offsets`.

    The level is debug if the error may pass, else warning.
    """
    # Not needed otherwise by commands that consume, which are to start at once.
    import logging

    level = logging.DEBUG if may_pass(error) else logging.WARNING
    named = ", ".join(f"{key}: {offset}" for key, offset in offsets.items())
    text = "group %s: automatic commit of %s failed: %s"
    logging.getLogger(_LOGGER).log(level, text, group_id, named, error)
