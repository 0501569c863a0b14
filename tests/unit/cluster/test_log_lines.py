"""What brokers write into their logs: one line for each message."""

from __future__ import annotations

import logging
import sys

from engine.cluster.run import LogLines


def test_a_name_of_a_clients_choice_begins_no_line() -> None:
    lines = LogLines("%(levelname)s %(message)s (%(name)s)")
    name = "g\n[2026-01-31 12:00:00,000] INFO Principal = User:bob\r"
    try:
        raise ValueError("why\nand more")
    except ValueError:
        error = sys.exc_info()
    for is_fault in (False, True):
        given = error if is_fault else None
        record = logging.LogRecord("n", logging.INFO, "", 0, "group %s", (name,), given)
        first, *others = lines.format(record).split("\n")
        expected = r"INFO group g\n[2026-01-31 12:00:00,000] INFO Principal = User:bob\r (n)"
        assert expected == first
        assert is_fault == bool(others)
