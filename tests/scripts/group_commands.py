"""The commands of scripts of groups: a coordinator, and members that send it requests.

| command | does |
|---|---|
| `coordinator` | makes a coordinator of group g: the first rebalance waits 3 s, sessions last 10 s, rebalances 60 s |
| `join A [metadata=v]` | sends JoinGroup: a new member at first, later by its id |
| `sync A [A=x B=y]` | sends SyncGroup in the generation of A's last join; a leader with assignments |
| `heartbeat A` | sends a Heartbeat |
| `leave A` | sends LeaveGroup |
| `lose A` | the responses to A are lost from now on, until its next request |
| `pass 3000` | lets ms go by |
| `state` | shows the group |
"""  # noqa: E501 - a table

from __future__ import annotations

from engine.groups.member import JoinResult, SyncResult
from engine.groups.requests import LeavingMember
from engine.host.promise import Promise
from engine.kafka_errors import kafka_error
from tests.scripts.language import BadScript
from tests.unit.groups.stage import RANGE, Stage


class GroupScript:
    """Runs commands, one after the other; a new one has no coordinator yet."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._joined: dict[str, JoinResult] = {}
        self._lost: set[str] = set()
        self._notes: list[str] = []

    def run(self, line: str) -> list[str]:
        """Do what a line says; returns what it prints, and what happened because of it."""
        verb, *words = line.split()
        command = getattr(self, f"do_{verb}", None)
        if command is None:
            raise BadScript(f"no command: {line}")
        if verb == "coordinator":
            self._stage = Stage()
            return []
        printed = command(*words)
        notes, self._notes = self._notes, []
        return [*notes, *(printed or [])]

    @property
    def stage(self) -> Stage:
        """The coordinator; `coordinator` makes it."""
        if self._stage is None:
            raise BadScript("a script begins with `coordinator`")
        return self._stage

    def do_coordinator(self) -> None:
        """Stand for what `run` does itself."""

    def do_join(self, name: str, *options: str) -> list[str]:
        self._lost.discard(name)
        values = dict(option.split("=", 1) for option in options)
        protocol = RANGE
        if "metadata" in values:
            protocol = RANGE._replace(metadata=RANGE.metadata + values["metadata"].encode())
        known = self._joined.get(name)
        member_id = "" if known is None else known.member_id
        response = self.stage.join(member_id, protocols=(protocol,))
        return self._answered(name, response, f"{name}: waits for the others to join")

    def do_sync(self, name: str, *assignments: str) -> list[str]:
        self._lost.discard(name)
        if name not in self._joined:
            return [f"{name}: has not joined"]
        assigned = dict(word.split("=", 1) for word in assignments)
        response = self.stage.sync(
            self._joined[name],
            {
                self._joined[member].member_id: value.encode()
                for member, value in assigned.items()
                if member in self._joined
            },
        )
        return self._answered(name, response, f"{name}: waits for the assignment")

    def _answered(
        self, name: str, response: Promise[JoinResult] | Promise[SyncResult], parked: str
    ) -> list[str]:
        if response.is_kept:
            self._note(name, response.result())
            return []
        lost_before = set(self._lost)

        def note() -> None:
            if name not in self._lost or name in lost_before:
                self._note(name, response.result())

        response.watch(note)
        return [parked]

    def _note(self, name: str, result: JoinResult | SyncResult) -> None:
        if result.error_code:
            self._notes.append(f"{name}: {kafka_error(result.error_code).name}")
        elif isinstance(result, SyncResult):
            self._notes.append(f"{name}: assigned {result.assignment.decode() or 'nothing'}")
        else:
            self._joined[name] = result
            leader = "itself" if result.leader_id == result.member_id else "another"
            told = f", sees {len(result.members)} members" if result.members else ""
            self._notes.append(
                f"{name}: joined generation {result.generation_id}, led by {leader}{told}"
            )

    def do_lose(self, name: str) -> None:
        self._lost.add(name)
        # It has its id from the first response to it.
        member_id = next((m for m in self.stage.group().members if m not in self._ids()), None)
        if name not in self._joined and member_id is not None:
            self._joined[name] = JoinResult(member_id)

    def _ids(self) -> set[str]:
        return {joined.member_id for joined in self._joined.values()}

    def do_heartbeat(self, name: str) -> list[str]:
        code = self.stage.heartbeat(self._joined[name])
        return [f"{name}: {'ok' if code == 0 else kafka_error(code).name}"]

    def do_leave(self, name: str) -> None:
        leaving = LeavingMember(self._joined[name].member_id, None)
        self.stage.coordinator.memberships.remove_members("g", [leaving])

    def do_pass(self, duration_ms: str) -> None:
        self.stage.pass_ms(int(duration_ms))

    def do_state(self) -> list[str]:
        group = self.stage.group()
        names = {joined.member_id: name for name, joined in self._joined.items()}
        members = ", ".join(sorted(names.get(m, "one not answered yet") for m in group.members))
        leader = names.get(group.leader_id or "", "nobody known")
        return [
            f"{group.state.value}, generation {group.generation_id}, "
            f"members {members or 'none'}, leader {leader}"
        ]
