"""How long a coordinator takes to load a million committed offsets, beside a real one.

    python -m tests.perf.coordinator_load --address HOST:PORT --groups 2000 --partitions 500

commits the offsets to one running broker, whose `offsets.topic.num.partitions` is 1: each group
commits all partitions of one topic. Stop that broker then, begin

    python -m tests.perf.coordinator_load --address HOST:PORT --watch

and start it again: it prints for how long the coordinator answered COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import argparse
import struct
import time
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from engine.kafka_errors import COORDINATOR_LOAD_IN_PROGRESS
from engine.wire import messages
from tests.perf.group_load import OpenConnection, coordinator_is_ready

_VERSION: Final = 8
_DESCRIBE_VERSION: Final = 5
_POLL_S: Final = 0.02
_TIMEOUT_S: Final = 120.0
_TOPIC: Final = "committed"


def _request(group: str, partitions: int) -> messages.OffsetCommitRequest:
    request = messages.OffsetCommitRequest
    rows = [
        request.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index * 7, committed_metadata=""
        )
        for index in range(partitions)
    ]
    return request(
        group_id=group, topics=[request.OffsetCommitRequestTopic(name=_TOPIC, partitions=rows)]
    )


def _watch(address: str) -> None:
    """Ask for a group until it is served; print for how long it was being loaded."""
    request = messages.DescribeGroupsRequest(groups=["group-0"])
    began_s: float | None = None
    end_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < end_s:
        try:
            connection = OpenConnection(address)
        except OSError:
            time.sleep(_POLL_S)
            continue
        code = -1
        try:
            while code:
                time.sleep(_POLL_S)
                code = (
                    connection.ask("DescribeGroups", _DESCRIBE_VERSION, request)
                    .groups[0]
                    .error_code
                )
                if code == COORDINATOR_LOAD_IN_PROGRESS and began_s is None:
                    began_s = time.perf_counter()
        except (OSError, struct.error):
            continue
        finally:
            connection.close()
        took_s = 0.0 if began_s is None else time.perf_counter() - began_s
        print(f"loaded in {took_s:.2f} s")
        return
    raise SystemExit("no coordinator in time")


def main() -> None:
    """Create the topic, commit for each group, and print how long that took; or watch a start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", required=True)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=500)
    parser.add_argument("--watch", action="store_true")
    options = parser.parse_args()
    if options.watch:
        _watch(options.address)
        return
    admin = AdminClient({"bootstrap.servers": options.address, "log_level": 0})
    created = admin.create_topics([NewTopic(_TOPIC, options.partitions, 1)])
    created[_TOPIC].result(_TIMEOUT_S)
    coordinator_is_ready(options.address, ["group-0"])
    connection = OpenConnection(options.address)
    began_s = time.perf_counter()
    for number in range(options.groups):
        request = _request(f"group-{number}", options.partitions)
        response = connection.ask("OffsetCommit", _VERSION, request)
        codes = {row.error_code for row in response.topics[0].partitions}
        assert codes == {0}, codes
    connection.close()
    count = options.groups * options.partitions
    print(f"{count:,} offsets committed in {time.perf_counter() - began_s:.1f} s")


if __name__ == "__main__":
    main()
