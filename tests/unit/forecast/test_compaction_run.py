"""Directories are cleaned by compiled code where that is worth it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.forecast import compaction_run
from tests.unit.forecast.compacted_dirs import cleaned, golden_directory


@pytest.mark.parametrize(("least_bytes", "is_taken_up"), [(1, True), (1 << 30, False)])
def test_compiled_code_is_loaded_where_a_log_is_large_enough(
    least_bytes: int, is_taken_up: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    monkeypatch.setattr(compaction_run, "CLEANER_PROCESS_BYTES_MIN", least_bytes)
    monkeypatch.setattr(compaction_run, "load_or_compile_cleaner", lambda: taken.append(True))
    (log,) = cleaned(golden_directory(tmp_path), "kv-drop")
    assert log.pass_count
    assert is_taken_up == bool(taken)
