"""How long a coordinator takes to load a million committed offsets, beside a real one.

    python -m tests.perf.coordinator_load --address HOST:PORT --groups 2000 --partitions 500

commits the offsets to one running broker, whose `offsets.topic.num.partitions` is 1: each group
commits all partitions of one topic. Restart that broker then: both kinds log
`Finished loading offsets and group metadata from __consumer_offsets-0 in … milliseconds`.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from engine.wire import messages
from tests.perf.group_load import OpenConnection, coordinator_is_ready

_VERSION: Final = 8
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


def main() -> None:
    """Create the topic, commit for each group, and print how long that took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", required=True)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=500)
    options = parser.parse_args()
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
