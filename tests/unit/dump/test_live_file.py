"""A log that is being written can be dumped: what was whole at the start is shown, no more."""

from __future__ import annotations

from engine.dump.log_dump import LogDump
from engine.dump.options import DumpOptions
from engine.dump.output import Output
from engine.dump.problems import Problems
from engine.host.memory import MemoryFiles
from engine.records.builder import BatchBuilder, BatchSettings

PATH = "/t-0/00000000000000000000.log"


def _batch(base_offset: int) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=base_offset))
    builder.append(1_700_000_000_000, b"k", b"v")
    return bytes(builder.build())


def _files(content: bytes) -> MemoryFiles:
    files = MemoryFiles()
    files.make_dir("/t-0")
    files.replace_file(PATH, content)
    return files


def test_batches_appended_meanwhile_are_not_shown() -> None:
    files = _files(_batch(0) + _batch(1))
    shown: list[bytes] = []
    out = Output(lambda block: shown.append(bytes(block)))
    dump = LogDump(files.open(PATH), PATH, DumpOptions(deep=True), out, Problems("3.9.1"))
    writer = files.open(PATH, write=True)
    writer.append([_batch(2)])
    dump.run()
    out.flush()
    assert 2 == b"".join(shown).count(b"baseOffset: ")
    assert b"invalid bytes" not in b"".join(shown)


def test_a_batch_that_is_half_written_is_trailing_bytes() -> None:
    files = _files(_batch(0) + _batch(1)[:-3])
    shown: list[bytes] = []
    out = Output(lambda block: shown.append(bytes(block)))
    LogDump(files.open(PATH), PATH, DumpOptions(), out, Problems("3.9.1")).run()
    out.flush()
    expected = f"Found {len(_batch(1)) - 3} invalid bytes at the end of {PATH.rsplit('/', 1)[1]}\n"
    assert b"".join(shown).endswith(expected.encode())


def test_a_dump_changes_nothing() -> None:
    files = _files(_batch(0))
    before = files.operations
    out = Output(lambda _block: None)
    LogDump(files.open(PATH), PATH, DumpOptions(deep=True), out, Problems("3.9.1")).run()
    assert before == files.operations
