"""What each fast path saves: the same load with it and without, in microseconds an operation.

    python -m tests.perf.fast_paths [--only TEXT] [--rounds 7]

A fast path is taken out by having it answer that it has done nothing; the general path beside it
then serves. What is behind it in the fast way is taken out with it: the figure of a row is what
its users would lose. Rounds with and without are interleaved, and the least of each counts, in CPU
time of this process. The figures stand in docs/internals/fast_paths.md.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from engine.api import fast_produce, produce
from engine.api.admission import Admission
from engine.api.fast_fetch import FastFetch
from engine.api.fast_follower_fetch import FastFollowerFetch
from engine.api.fast_offset_commit import FastOffsetCommit
from engine.api.fast_produce import FastProduce
from engine.api.produce import Produce
from engine.broker.coordinator_topic import CoordinatorTopic
from engine.client.loop_connection import LoopConnection
from engine.dump.rows import RowDump
from engine.inspection.fast_batches import FastBatches
from engine.log import checked_batch, local_log, replica_chunks
from engine.log.cleaner import batch_filter, segment_cleaner
from engine.log.cleaner.batch_filter import BatchFilter
from engine.log.cleaner.segment_cleaner import SegmentCleaner
from engine.log.local_log import LocalLog
from engine.log.recovery.segment_replay import SegmentReplay
from engine.log.validation import LeaderRules
from engine.native.clean_records import CleanerTier
from engine.native.record_fields import FieldTier
from engine.native.record_walk import WalkTier
from engine.records import record_run
from engine.records.codec import Codec
from engine.replication.appends import Appends
from engine.replication.fetches import Fetches
from engine.replication.following.fast_fetch_cycle import FastFetchCycle
from engine.replication.partition import Partition
from engine.server import ClientConnection
from engine.wire import produce_bytes
from tests.compiled_walk import compiled_cleaner_here, compiled_fields_here, compiled_walk_here
from tests.perf.fast_path_loads import (
    Load,
    appends,
    chunks,
    cleanings,
    commits,
    dumps,
    fetch_cycles,
    fetches,
    followed,
    follower_fetches,
    marked_ends,
    outgoing,
    produces,
    replays,
    runs,
    verifications,
    waiting_fetches,
)
from tests.perf.ratios import machine_line


class Row(NamedTuple):
    """A fast path, its load, and what takes its place without it."""

    name: str
    load: Callable[[], Load]
    without: tuple[tuple[Any, str, Any], ...]
    #: Another load that stands for the general path, in place of `without`.
    general: Callable[[], Load] | None = None
    #: What is taken out of both.
    always: tuple[tuple[Any, str, Any], ...] = ()


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _no(*_: Any, **__: Any) -> bool:
    return False


def _taken_generally(client: ClientConnection, frame: memoryview) -> None:
    client._serve_generally(frame, 0)


def _produce_rows() -> list[Row]:
    return [
        Row("Admission.is_open_to", produces, ((Admission, "is_open_to", _no),)),
        Row("FastProduce.answer", produces, ((FastProduce, "answer", _nothing),)),
        Row(
            "ClientConnection.serve_frame",
            produces,
            ((ClientConnection, "serve_frame", _taken_generally),),
        ),
        Row("read_produce_fast", produces, ((fast_produce, "read_produce_fast", _nothing),)),
        Row(
            "_read_flexible_fast",
            produces,
            ((produce_bytes, "_read_flexible_fast", _nothing),),
            always=((FastProduce, "answer", _nothing),),
        ),
        Row("Produce.answer_fast", partial(produces, 8), ((Produce, "answer_fast", _nothing),)),
        Row("is_fast_path of records", partial(produces, 8), ((produce, "is_fast_path", _no),)),
        Row(
            "Appends.append_records_fast",
            produces,
            ((Appends, "append_records_fast", _nothing),),
        ),
        Row("Partition.append_fast", produces, ((Partition, "append_fast", _nothing),)),
    ]


def _commit_rows() -> list[Row]:
    return [
        Row("FastOffsetCommit.answer", commits, ((FastOffsetCommit, "answer", _nothing),)),
        Row(
            "CoordinatorTopic.append_fast", commits, ((CoordinatorTopic, "append_fast", _nothing),)
        ),
    ]


def _append_rows() -> list[Row]:
    rows = [
        Row("LocalLog.append_fast", appends, ((LocalLog, "append_fast", _nothing),)),
        Row(
            "LocalLog._append_marker_fast",
            marked_ends,
            ((LocalLog, "_append_marker_fast", _nothing),),
        ),
        Row(
            "LeaderRules.largest_time_fast",
            partial(appends, records=50),
            ((LeaderRules, "largest_time_fast", _nothing),),
        ),
    ]
    rows += [
        Row(
            f"open_fast, {codec.name.lower()}",
            partial(appends, codec, 50),
            ((local_log, "open_fast", _nothing), (checked_batch, "open_fast", _nothing)),
        )
        for codec in Codec
        if codec is not Codec.NONE
    ]
    return rows


def _fetch_rows() -> list[Row]:
    return [
        Row("FastFetch.answer", fetches, ((FastFetch, "answer", _nothing),)),
        Row("Partition.read_fast", fetches, ((Partition, "read_fast", _nothing),)),
        Row("Fetches.wait_fast", waiting_fetches, ((Fetches, "wait_fast", _nothing),)),
        Row(
            "FastFollowerFetch.answer",
            follower_fetches,
            ((FastFollowerFetch, "answer", _nothing), (FastFollowerFetch, "begin", _nothing)),
        ),
        Row("FastFetchCycle.read", fetch_cycles, ((FastFetchCycle, "read", _nothing),)),
        Row("LoopConnection._take_fast", fetch_cycles, ((LoopConnection, "_take_fast", _no),)),
    ]


def _log_rows() -> list[Row]:
    return [
        Row(
            "LocalLog.append_as_follower_fast",
            followed,
            ((LocalLog, "append_as_follower_fast", _nothing),),
        ),
        Row("_take_fast of a response", chunks, ((replica_chunks, "_parse_fast", _none_taken),)),
        Row("SegmentReplay._add_fast", replays, ((SegmentReplay, "_add_fast", _no),)),
        Row("FastBatches.take", verifications, ((FastBatches, "take", _no),)),
        Row("RowDump._dump_records_fast", dumps, ((RowDump, "_dump_records_fast", _nothing),)),
        Row("read_run_fast", runs, ((record_run, "read_run_fast", _nothing),)),
        Row(
            "read_headers_fast",
            partial(runs, headers=True),
            ((record_run, "read_headers_fast", _nothing),),
        ),
        Row(
            "SegmentCleaner._map_keys_fast",
            cleanings,
            ((SegmentCleaner, "_map_keys_fast", _nothing),),
        ),
        Row(
            "BatchFilter._choose_records_fast",
            cleanings,
            ((BatchFilter, "_choose_records_fast", _nothing),),
        ),
        Row(
            "fast_spans",
            cleanings,
            (
                (BatchFilter, "_choose_records_fast", _nothing),
                (SegmentCleaner, "_map_keys_fast", _nothing),
                (batch_filter, "fast_spans", _nothing),
                (segment_cleaner, "fast_spans", _nothing),
            ),
        ),
        Row(
            "Producer.add_fast",
            partial(outgoing, at_once=True),
            (),
            partial(outgoing, at_once=False),
        ),
    ]


def _none_taken(*_: Any, **__: Any) -> tuple[list[Any], int]:
    return [], 0


@contextmanager
def taken_out(without: tuple[tuple[Any, str, Any], ...]) -> Iterator[None]:
    """Have fast paths do nothing meanwhile."""
    kept = [(owner, name, owner.__dict__[name]) for owner, name, _ in without]
    for owner, name, answer in without:
        setattr(owner, name, answer)
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def _measure(load: Callable[[], Load]) -> tuple[float, str]:
    """Return the CPU time of one operation, in µs, and what that is."""
    made = load()
    gc.collect()
    gc.disable()
    try:
        start_ns = time.process_time_ns()
        made.run()
        return (time.process_time_ns() - start_ns) / 1000 / made.count, made.operation
    finally:
        gc.enable()


def measure(row: Row, rounds: int) -> tuple[float, float, str]:
    """Return what an operation costs with the fast path and without, in µs, and its name."""
    fast, general, operation = [], [], ""
    for _ in range(rounds):
        with taken_out(row.always):
            cost, operation = _measure(row.load)
        fast.append(cost)
        with taken_out((*row.always, *row.without)):
            general.append(_measure(row.general or row.load)[0])
    return min(fast), min(general), operation


def _all_rows() -> list[Row]:
    rows = [*_produce_rows(), *_commit_rows(), *_append_rows(), *_fetch_rows()]
    return [*rows, *_log_rows()]


def main() -> None:
    """Measure the rows that are asked for, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    WalkTier.walk = staticmethod(compiled_walk_here() or WalkTier.walk)
    FieldTier.read = compiled_fields_here()
    CleanerTier.code = compiled_cleaner_here()
    print(machine_line())
    print("| fast path | with it, µs | without, µs | saved, µs | of each |\n|---|---|---|---|---|")
    for row in _all_rows():
        if options.only not in row.name:
            continue
        fast_us, general_us, operation = measure(row, options.rounds)
        saved_us = general_us - fast_us
        print(
            f"| `{row.name}` | {fast_us:.2f} | {general_us:.2f} | {saved_us:.2f} | {operation} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
