"""The first metadata of a cluster, byte for byte."""

from __future__ import annotations

from engine.log.directory.bootstrap_snapshot import FeatureLevel, bootstrap_snapshot

#: As kafka-storage of 3.9.1 wrote it.
OF_KAFKA = bytes.fromhex(
    "0000000000000000000000470000000002ac3a7dfb002000000000000001a21f93c566000001a21f93c5"
    "66ffffffffffffffffffffffffffff000000012a00000008000000031600000000000000000000000000"
    "000000000000010000004f00000000021fab979e000000000000000001a21f93c58f000001a21f93c58f"
    "ffffffffffffffffffffffffffff000000013a000000012e010c00116d657461646174612e7665727369"
    "6f6e0015000000000000000000020000003f00000000026306867e002000000000000001a21f93c59000"
    "0001a21f93c590ffffffffffffffffffffffffffff000000011a00000008000000040600000000"
)


def test_a_snapshot_has_kafkas_bytes() -> None:
    """Kafka looks at the clock for each batch."""
    levels = [FeatureLevel("metadata.version", 21)]
    first = 0
    for end, timestamp_ms in {83: 1795826107750, 174: 1795826107791, 249: 1795826107792}.items():
        written = bootstrap_snapshot(levels, timestamp_ms)
        assert OF_KAFKA[first:end] == written[first:end]
        assert len(OF_KAFKA) == len(written)
        first = end
