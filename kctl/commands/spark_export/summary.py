"""The columns of the summary that `kctl spark-export` prints at the end."""

from __future__ import annotations

from kctl.render import Column

SUMMARY_COLUMNS = (
    Column("out", "OUT"),
    Column("file_count", "FILE COUNT", right=True),
    Column("record_count", "RECORD COUNT", right=True),
    Column("file_bytes", "FILE BYTES", right=True),
    Column("read_bytes", "READ BYTES", right=True),
    Column("bad_batch_count", "BAD BATCH COUNT", right=True),
    Column("problem_count", "PROBLEM COUNT", right=True),
)
