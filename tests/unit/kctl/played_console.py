"""Recorded calls of Kafka's console and admin tools, played with ours in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

from engine.client.producing import OutgoingRecord, Producer
from engine.client.transaction_session import TransactionSession
from kctl.compat.tools import run_tool
from tests.unit.kctl.played_tools import Ended, PlayedTools, Recorded
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

_SECURITY = {
    "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
    "super_users": "User:ANONYMOUS",
    "allow_everyone_if_no_acl_found": "true",
}
_TIMEOUT_MS = 900_000


class PlayedConsole(PlayedTools):
    """Three brokers, and tools that read standard input and print bytes."""

    #: Nothing here waits for what another tool began.
    between_steps_ms = 100

    def __init__(self, recorded: Recorded, version: str) -> None:
        super().__init__(
            recorded,
            auto_create_topics_enable="false",
            offsets_topic_num_partitions="4",
            transaction_state_log_num_partitions="4",
            group_initial_rebalance_delay_ms="0",
            **_SECURITY,
        )
        self._version = version
        self._captured: dict[str, str] = {}
        self._stdin = b""

    def run_step(self, step: dict[str, Any]) -> Ended:
        """Run a call with what it reads, and keep what later calls need."""
        self._stdin = step.get("stdin", "").encode()
        words = [self._filled(word) for word in step["args"]]
        ended = self.run(step["tool"], [*words, "--kafka-version", self._version])
        for name, pattern in step.get("capture", {}).items():
            found = re.search(pattern, ended.stdout)
            if found:
                self._captured[name] = found.group(1)
        return ended

    def _filled(self, word: str) -> str:
        for name, value in self._captured.items():
            word = word.replace(f"{{{name}}}", value)
        return word.replace("{BOOTSTRAP}", "here:9092").replace("{WORK}", "/given")

    def run(self, tool: str, words: list[str]) -> Ended:
        """Run a tool of ours."""
        raw, err = BytesIO(), StringIO()
        out = TextIOWrapper(raw, encoding="utf-8", write_through=True)
        with redirect_stdout(out), redirect_stderr(err):
            code = run_tool(
                tool,
                words,
                connecting=lambda _options: client_of(self.cluster, MemoryStreams(self.cluster)),
                files=self.files,
                stdin=BytesIO(self._stdin),
            )
        out.flush()
        text = raw.getvalue().decode().replace("/given/", "{WORK}/")
        return Ended(code, text, err.getvalue())

    def prepare(self, name: str) -> None:
        """Do what a step of another tool did."""
        _PREPARATIONS[name](self)

    def commit(self) -> None:
        """Write records in a transaction and commit it."""
        self._write("tx-done", 20, commits=True)

    def leave_open(self) -> None:
        """Write records in a transaction that nobody ends."""
        self._write("tx-open", 5, commits=False)

    def _write(self, transactional_id: str, count: int, *, commits: bool) -> None:
        with client_of(self.cluster, MemoryStreams(self.cluster)) as client:
            transaction = TransactionSession(client, transactional_id, _TIMEOUT_MS)
            producer = Producer(client, transaction=transaction)
            for _ in range(count):
                producer.add(OutgoingRecord("ledger", None, b"x"))
            assert all(result.error is None for result in producer.flush())
            if commits:
                transaction.end(commits=True)


_PREPARATIONS: dict[str, Callable[[PlayedConsole], None]] = {
    "data-create": lambda it: (it.create("letters", (1, 2)), it.create("orders", (1, 2)))[0],
    "data-create-keyed": lambda it: it.create("keyed", (1, 2), (2, 3), (3, 1)),
    "txn-topic": lambda it: it.create("ledger", (1, 2, 3)),
    "txn-done": lambda it: it.commit(),
    "txn-open-start": lambda it: it.leave_open(),
    "perf-topic": lambda it: it.create("bench", (2, 3)),
}
