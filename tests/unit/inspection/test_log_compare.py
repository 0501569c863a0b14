"""Two copies of a partition: the first offset at which they differ."""

from __future__ import annotations

import pytest

from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.inspection.log_compare import Comparison, compare_partitions
from engine.log.segment_files import list_partition_files
from tests.golden_cases import case_dir
from tests.unit.log.logs import batch, name_of, put

ONE = {0: batch(0, 3) + batch(3, 2), 5: batch(5, 5)}


def compare(left: dict[int, bytes], right: dict[int, bytes]) -> Comparison:
    files = MemoryFiles()
    for path, segments in (("/left", left), ("/right", right)):
        files.make_dir(path)
        for base, log in segments.items():
            put(files, name_of(base), log, path)
    return compare_partitions(
        files, list_partition_files(files, "/left"), list_partition_files(files, "/right")
    )


def test_copies_with_other_segment_bounds_are_the_same() -> None:
    found = compare(ONE, {0: b"".join(ONE.values())})
    assert found.is_same
    assert (found.equal_batches, found.left_offsets, found.right_offsets) == (3, (0, 10), (0, 10))


def test_a_copy_may_start_later_and_end_earlier() -> None:
    found = compare(ONE, {3: batch(3, 2)})
    assert found.is_same
    assert (found.equal_batches, found.right_offsets) == (1, (3, 5))
    assert compare(ONE, {20: batch(20)}).is_same
    assert compare(ONE, {0: b""}) == Comparison((0, 10), None, 0, None)


@pytest.mark.parametrize(
    ("other", "kind", "offset"),
    [
        (batch(3, 2, epoch=7), "epoch", 3),
        (batch(3, 2, at_ms=9), "bytes", 3),
        (batch(3), "bounds", 3),
        (batch(4), "bounds", 3),
        (b"", "missing", 3),
    ],
)
def test_the_first_difference_is_reported_by_what_it_means(
    other: bytes, kind: str, offset: int
) -> None:
    found = compare(ONE, {0: batch(0, 3) + other, 5: batch(5, 5)})
    assert (found.difference.kind, found.difference.offset) == (kind, offset)
    assert found.equal_batches == 1
    assert not found.is_same


def test_a_batch_in_the_middle_of_which_a_copy_starts_has_other_bounds() -> None:
    found = compare(ONE, {4: batch(4), 5: batch(5, 5)})
    assert (found.difference.kind, found.difference.offset) == ("bounds", 3)


def test_damage_is_no_difference_but_not_the_same_either() -> None:
    found = compare(ONE, {0: batch(0, 3) + b"\xff" * 100, 5: batch(5, 5)})
    assert found.difference is None
    assert "position" in found.damage[0]
    assert not found.is_same
    torn = compare(ONE, {0: ONE[0][:-1], 5: batch(5, 5)})
    assert "no batch" in torn.damage[0]
    assert compare(ONE, {0: ONE[0], 5: batch(5, 5)[:-1]}).is_same


def test_replicas_of_a_real_cluster_diverge_where_it_truncated_them() -> None:
    files = RealFiles()

    def compared(state: str, topic: str) -> Comparison:
        paths = [case_dir("epochs") / state / f"broker{n}" / topic for n in (1, 2)]
        return compare_partitions(files, *(list_partition_files(files, str(p)) for p in paths))

    # Source: truncations_logged in the case's description.
    for topic, offset in (("routes-0", 87), ("routes-1", 121), ("stops-0", 114)):
        found = compared("divergent", topic)
        assert (found.difference.kind, found.difference.offset) == ("epoch", offset)
        assert compared("rest", topic).is_same
