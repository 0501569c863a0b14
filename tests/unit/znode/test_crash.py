"""A store whose process is killed opens again with a prefix of its transactions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.host.memory import ManualClock
from engine.znode.model import Create
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore

# Each multi writes the same number to two nodes and a new child; it is told when it is done.
WRITER = """
import sys
from engine.host.memory import ManualClock
from engine.znode.model import Create, SetData
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore

store = ZnodeStore(SqliteJournal(sys.argv[1]), ManualClock())
me = store.session_ids()[0]
number = int(store.get(me, "/x")[0])
while True:
    number += 1
    data = b"%d" % number
    child = Create("/n/", data, sequential=True)
    store.multi(me, [SetData("/x", data), child, SetData("/y", data)])
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def test_what_was_answered_survives_a_kill_and_nothing_is_half_done(tmp_path: Path) -> None:
    path = str(tmp_path / "znodes.db")
    store = ZnodeStore(SqliteJournal(path), ManualClock())
    me = store.open_session(1000)
    store.multi(me, [Create("/x", b"0"), Create("/y", b"0"), Create("/n")])
    store.close()
    answered = 0
    for round_number in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(5 + 7 * round_number):
            answered = int(writer.stdout.readline())
        writer.kill()
        rest = writer.stdout.read().split("\n")
        answered = max([answered, *map(int, filter(None, rest[:-1]))])
        writer.stdout.close()
        writer.wait()
        store = ZnodeStore(SqliteJournal(path), ManualClock())
        written = int(store.get(me, "/x")[0] or b"")
        assert answered <= written <= answered + 1
        assert b"%d" % written == store.get(me, "/y")[0]
        assert [f"{number:010}" for number in range(written)] == store.children(me, "/n")[0]
        assert written + 2 == store.zxid
        store.close()
