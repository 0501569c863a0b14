"""The commands of scripts of transactions: coordinators, producers and leaders of partitions.

| command | does |
|---|---|
| `coordinator 1` | makes a coordinator of transactional id x; another one coordinates by the same log, in the next epoch |
| `init` | sends InitProducerId |
| `add t-0 u-0 [epoch=0]` | sends AddPartitionsToTxn |
| `end commit [epoch=0]`, `end abort` | sends EndTxn |
| `pass 60000` | lets ms go by, and looks for transactions that take too long |
| `hold`, `release` | keeps requests with markers on their way; delivers them |
| `leader t-0 2`, `leader t-0 none` | another broker leads a partition, or none |
| `refuse t-0 6`, `accept t-0` | the leader answers markers of a partition with a code; takes them again |
| `to 1`, `resign 1` | later commands go to this coordinator; it is told that it leads no more |
| `state` | shows the transaction and the markers that were written since |
"""  # noqa: E501 - a table

from __future__ import annotations

from engine.host.promise import Promise
from engine.kafka_errors import kafka_error
from engine.model import TopicPartition
from tests.scripts.language import BadScript
from tests.unit.transactions.stage import COUNT, Stage


class TransactionScript:
    """Runs commands, one after the other; a new one has no coordinator yet."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}
        self._current = ""
        self._seen: dict[str, int] = {}
        self._notes: list[str] = []

    def run(self, line: str) -> list[str]:
        """Do what a line says; returns what it prints, and what happened because of it."""
        verb, *words = line.split()
        command = getattr(self, f"do_{verb}", None)
        if command is None:
            raise BadScript(f"no command: {line}")
        options = dict(word.split("=", 1) for word in words if "=" in word)
        printed = command([word for word in words if "=" not in word], options)
        for stage in self._stages.values():
            stage.timers.run_until_idle()
        notes, self._notes = self._notes, []
        return [*(printed or []), *notes, *self._written()]

    @property
    def stage(self) -> Stage:
        """The coordinator that commands go to."""
        if self._current not in self._stages:
            raise BadScript("a script begins with `coordinator`")
        return self._stages[self._current]

    def do_coordinator(self, words: list[str], options: dict[str, str]) -> None:
        (name,) = words
        before = self._stages.get(self._current)
        stage = Stage(None if before is None else before.log)
        stage.timers.run_until_idle()
        self._stages[name], self._current = stage, name

    def do_to(self, words: list[str], options: dict[str, str]) -> None:
        self._current = words[0]

    def do_resign(self, words: list[str], options: dict[str, str]) -> None:
        for partition in range(COUNT):
            self._stages[words[0]].coordinator.registry.on_resigned(partition)

    def do_init(self, words: list[str], options: dict[str, str]) -> list[str]:
        result = self.stage.init()
        if result.error_code:
            return [f"producer: {kafka_error(result.error_code).name}"]
        return [f"producer: epoch {result.producer_epoch}"]

    def do_add(self, words: list[str], options: dict[str, str]) -> None:
        keys = [_key(word) for word in words]
        self._answer(self.stage.add(*keys, epoch=int(options.get("epoch", "0"))))

    def do_end(self, words: list[str], options: dict[str, str]) -> None:
        epoch = int(options.get("epoch", "0"))
        self._answer(self.stage.end(is_commit=words == ["commit"], epoch=epoch))

    def _answer(self, response: Promise[int]) -> None:
        def note() -> None:
            code = response.result()
            self._notes.append(f"producer: {'ok' if code == 0 else kafka_error(code).name}")

        response.watch(note)

    def do_pass(self, words: list[str], options: dict[str, str]) -> None:
        for stage in self._stages.values():
            stage.clock.advance(int(words[0]))
            stage.timers.run_until_idle()
            stage.abort_timed_out()

    def do_hold(self, words: list[str], options: dict[str, str]) -> None:
        self.stage.channels.is_held = True

    def do_release(self, words: list[str], options: dict[str, str]) -> None:
        self.stage.channels.release()

    def do_leader(self, words: list[str], options: dict[str, str]) -> None:
        for stage in self._stages.values():
            stage.channels.leaders[_key(words[0])] = -1 if words[1] == "none" else int(words[1])

    def do_refuse(self, words: list[str], options: dict[str, str]) -> None:
        for stage in self._stages.values():
            stage.channels.codes[_key(words[0])] = int(words[1])

    def do_accept(self, words: list[str], options: dict[str, str]) -> None:
        for stage in self._stages.values():
            del stage.channels.codes[_key(words[0])]

    def do_state(self, words: list[str], options: dict[str, str]) -> list[str]:
        transaction = self.stage.transaction()
        partitions = ", ".join(sorted(map(str, transaction.partitions))) or "none"
        return [
            f"{transaction.state.value}, epoch {transaction.producer_epoch}, "
            f"partitions {partitions}"
        ]

    def _written(self) -> list[str]:
        """Return the markers that coordinators have sent since."""
        lines = []
        for name, stage in self._stages.items():
            for broker_id, markers in stage.channels.written[self._seen.get(name, 0) :]:
                for marker in markers:
                    end = "COMMIT" if marker.is_commit else "ABORT"
                    keys = ", ".join(map(str, marker.partitions))
                    lines.append(
                        f"{name} to {broker_id}: {end} in epoch {marker.producer_epoch} for {keys}"
                    )
            self._seen[name] = len(stage.channels.written)
        return lines


def _key(word: str) -> TopicPartition:
    topic, _, partition = word.rpartition("-")
    return TopicPartition(topic, int(partition))
