"""Append the records of groups to their partitions of `__consumer_offsets`.

| append failed with | error of the group |
|---|---|
| unknown topic, too few replicas | COORDINATOR_NOT_AVAILABLE |
| not leader, storage | NOT_COORDINATOR |
| timeout | REBALANCE_IN_PROGRESS |
| too large | UNKNOWN_SERVER_ERROR |

Source: GroupMetadataManager.storeGroup of 3.9.1.
"""

from __future__ import annotations

import logging

from engine.errors import WireError
from engine.groups.group import Group
from engine.groups.ports import GroupLog, Written
from engine.groups.records import build_group_record
from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    INVALID_FETCH_SIZE,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REBALANCE_IN_PROGRESS,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.naming import coordinator_partition

_log = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

#: Response codes of failed appends, for groups and for commits.
LOG_ERRORS = {
    UNKNOWN_TOPIC_OR_PARTITION: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS: COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: COORDINATOR_NOT_AVAILABLE,
    NOT_LEADER_OR_FOLLOWER: NOT_COORDINATOR,
    KAFKA_STORAGE_ERROR: NOT_COORDINATOR,
}
TOO_LARGE = frozenset((MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_FETCH_SIZE))


class GroupStore:
    """Appends group records to the log."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log

    def store_group(self, group: Group, assignments: dict[str, bytes]) -> Promise[int]:
        """Append the record of a group's generation with `assignments` by member id.

        Promises 0 once it is written, else the error code for the members.
        """
        partition = coordinator_partition(group.group_id, self._log.partition_count())
        try:
            record = build_group_record(group, assignments)
        except WireError as error:
            _log.warning("group %s cannot be written: %s", group.group_id, error)
            return Promise.of(UNKNOWN_SERVER_ERROR)
        written = self._log.append(partition, (record,))

        def code(result: Written) -> int:
            """Return the error code for the members.

            A warning is logged if the record was not written.
            """
            error_code = _translate_code(result.error_code)
            if error_code:
                _log.warning("group %s was not written: error %d", group.group_id, error_code)
            return error_code

        return written.then(code)


def _translate_code(error_code: int) -> int:
    """Return the error code that members get if the append of their group failed with a code."""
    if error_code == REQUEST_TIMED_OUT:
        return REBALANCE_IN_PROGRESS
    if error_code in TOO_LARGE:
        return UNKNOWN_SERVER_ERROR
    return LOG_ERRORS.get(error_code, error_code)
