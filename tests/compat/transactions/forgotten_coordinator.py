"""A producer of librdkafka commits offsets in a transaction once the group's coordinator is gone.

    python -m tests.compat.transactions.forgotten_coordinator ours|kafka [--libs DIR] [--debug]

On three brokers, of ours or of Kafka's jars: one transaction commits offsets, so that the producer
knows the group's coordinator, which neither leads the output nor coordinates the transactional id.
It is killed, the producer hears of brokers without it, and commits offsets of the next transaction
with a time-out of 10 s. librdkafka up to 2.16 waits for a change of that broker, which it keeps no
more, and looks at no time-out (its issues 5456, 5511). Exit code: 0 if the call ends, 1 if it
stands still, even after the broker is back. With `--debug` its lines come on standard error.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.brokers import Cluster, started_cluster
from tests.compat.observer import Observer

_BROKERS: Final = 3
_INPUT, _OUTPUT, _ID = "input", "output", "producer"
_READY_S: Final = 60.0
_TIMEOUT_S: Final = 10.0
_STANDS_STILL_S: Final = 45.0


def _group_apart(observer: Observer) -> tuple[str, int]:
    """Return a group and its coordinator, which has no other part in the transaction."""
    end_s = time.monotonic() + _READY_S
    for number in itertools.cycle(range(20)):
        with suppress(ConnectionError):
            leaders = observer.leaders(_OUTPUT) or {0: None}
            others = (leaders[0], observer.transaction_coordinator(_ID))
            group = f"group-{number}"
            broker_id = observer.coordinator(group)[0]
            if None not in others and broker_id not in others:
                return group, broker_id
        assert time.monotonic() < end_s, "no coordinators in time"
        time.sleep(0.1)
    raise AssertionError("a cycle has no end")


class _Call:
    """Offsets that are committed in a transaction by a thread of their own."""

    def __init__(self, producer: Producer, offset: int, metadata: object) -> None:
        self._begun_s = time.monotonic()
        self.outcome: str | None = None
        self._thread = threading.Thread(target=self._run, args=(producer, offset, metadata))
        self._thread.daemon = True
        self._thread.start()

    def _run(self, producer: Producer, offset: int, metadata: Any) -> None:
        places = [TopicPartition(_INPUT, 0, offset)]
        try:
            producer.send_offsets_to_transaction(places, metadata, _TIMEOUT_S)
            self.outcome = "done"
        except KafkaException as error:
            self.outcome = str(error.args[0])

    def line(self) -> str:
        """Wait for its end, but not for ever; return what there is to report."""
        self._thread.join(_STANDS_STILL_S)
        return f"{self.outcome or 'stands still'} after {time.monotonic() - self._begun_s:.1f} s"


def run(cluster: Cluster, *, has_debug: bool) -> int:
    """Print how the calls end; returns the exit code."""
    common: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
    admin = AdminClient(common)
    for created in admin.create_topics([NewTopic(_INPUT, 1, 3), NewTopic(_OUTPUT, 1, 3)]).values():
        created.result(_READY_S)
    group, broker_id = _group_apart(Observer(cluster.bootstrap))
    debug = {"log_level": 7, "debug": "eos,broker,protocol"} if has_debug else {}
    producer = Producer({**common, "transactional.id": _ID, **debug})
    producer.init_transactions(_READY_S)
    metadata = Consumer({**common, "group.id": group}).consumer_group_metadata()

    def begun(offset: int) -> _Call:
        producer.begin_transaction()
        producer.produce(_OUTPUT, b"v", partition=0)
        producer.flush(_READY_S)
        return _Call(producer, offset, metadata)

    print(f"librdkafka {libversion()[0]}; the first: {begun(1).line()}", flush=True)
    producer.commit_transaction(_READY_S)
    cluster.kill(broker_id)
    end_s = time.monotonic() + _READY_S
    while broker_id in producer.list_topics(timeout=_READY_S).brokers:
        assert time.monotonic() < end_s, "the broker is still listed"
        time.sleep(0.2)
    call = begun(2)
    print(f"without its coordinator: {call.line()}", flush=True)
    if call.outcome is None:
        cluster.restart(broker_id)
        print(f"with it again: {call.line()}", flush=True)
    return int(call.outcome is None)


def main() -> int:
    """Start brokers and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("brokers", choices=("ours", "kafka"))
    parser.add_argument("--libs")
    parser.add_argument("--debug", action="store_true")
    options = parser.parse_args()
    if options.brokers == "kafka" and options.libs is None:
        parser.error("brokers of Kafka need a folder of its jars (--libs)")
    folder = Path(tempfile.mkdtemp(prefix="forgotten-"))
    cluster = started_cluster(options.brokers, folder, options.libs, _BROKERS)
    try:
        code = run(cluster, has_debug=options.debug)
    finally:
        cluster.close()
    sys.stdout.flush()
    # A producer that stands still would be waited for.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
