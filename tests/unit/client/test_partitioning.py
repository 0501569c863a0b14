from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.client.partitioning import murmur2, partition_of_key, partitions_of_keys


@pytest.mark.parametrize(
    ("text", "expected"),
    # By org.apache.kafka.common.utils.Utils.murmur2, as its own tests have them.
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert expected & 0xFFFFFFFF == murmur2(text.encode())


def test_a_key_stays_in_its_partition() -> None:
    assert 1 == partition_of_key(b"a", 3)
    assert 2 == partition_of_key(b"b", 3)


@given(st.lists(st.binary(max_size=20)), st.integers(1, 1 << 31))
def test_many_keys_go_where_each_goes(keys: list[bytes], count: int) -> None:
    assert [partition_of_key(key, count) for key in keys] == partitions_of_keys(keys, count)
