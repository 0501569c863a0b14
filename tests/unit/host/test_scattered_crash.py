"""A disk that keeps later writes of a file and loses earlier ones, or only their room."""

from __future__ import annotations

from random import Random

from engine.host.memory import MemoryFiles

WRITES = [b"a" * 3, b"b" * 3, b"c" * 3]


def _images() -> set[bytes]:
    """Return what crashes leave of a file with a synced start and three writes."""
    found = set()
    for seed in range(300):
        files = MemoryFiles()
        handle = files.open("/f", write=True, create=True)
        handle.append((b"s",))
        handle.sync()
        files.sync_dir("/")
        for write in WRITES:
            handle.append((write,))
        found.add(files.after_scattered_crash(Random(seed)).read_bytes("/f"))
    return found


def test_what_is_synced_is_always_there() -> None:
    assert all(image.startswith(b"s") for image in _images())


def test_a_later_write_may_be_kept_without_an_earlier_one() -> None:
    assert b"s" + bytes(3) + b"bbb" in _images()


def test_a_tail_may_be_zeros() -> None:
    assert b"saaabbb" + bytes(3) in _images()


def test_all_of_it_and_nothing_of_it_may_be_kept() -> None:
    assert {b"s", b"saaabbbccc"} <= _images()


def test_a_second_file_that_is_written_later_is_kept_as_a_prefix() -> None:
    for seed in range(100):
        files = MemoryFiles()
        for name in ("/one", "/two"):
            handle = files.open(name, write=True, create=True)
            files.sync_dir("/")
            for write in WRITES:
                handle.append((write,))
        disk = files.after_scattered_crash(Random(seed))
        if disk.read_bytes("/two"):
            assert b"".join(WRITES) == disk.read_bytes("/one")
