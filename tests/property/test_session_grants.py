"""What a session was granted never outlives what granted it: rules, principal, quotas, log level.

The same requests and changes happen to two brokers. Sessions of one remember what access rules have
granted them, and take fast paths; on the other the rules are asked for each request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.api.acl_authorizer import AclAuthorizer
from engine.api.enforced_quotas import EnforcedQuotas, QuotaWindows
from engine.records.builder import build_batch
from engine.records.record import Record, TimestampType
from engine.security.acl_cache import AclCache
from engine.security.acls import (
    AccessEntry,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)
from engine.security.quota_limits import DEFAULT, NONE, QuotaLimits, QuotaOwner
from engine.wire.codec import message_codec
from tests.unit.api.data_stage import T0, DataStage, fetch_request, produce_request
from tests.unit.log.writing import NOW_MS

Step = tuple[str, Any]

_LOG = logging.getLogger("kafka.authorizer.logger")
_USERS = ("User:ANONYMOUS", "User:b", "User:admin")
_PATTERNS = (
    AclPattern(AclResource.TOPIC, "t", PatternType.LITERAL),
    AclPattern(AclResource.TOPIC, "u", PatternType.LITERAL),
    AclPattern(AclResource.TOPIC, "*", PatternType.LITERAL),
    AclPattern(AclResource.TOPIC, "t", PatternType.PREFIXED),
    AclPattern(AclResource.TRANSACTIONAL_ID, "t", PatternType.LITERAL),
)
_ENTRIES = st.builds(
    AccessEntry,
    st.sampled_from((*_USERS[:2], "User:*")),
    st.sampled_from(("*", "*", "10.9.9.9")),
    st.sampled_from((AclOperation.READ, AclOperation.WRITE, AclOperation.ALL)),
    st.sampled_from((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
)
_NOT_B = AccessEntry("User:b", "*", AclOperation.ALL, AclPermission.DENY)
_ALL = AccessEntry("User:*", "*", AclOperation.ALL, AclPermission.ALLOW)
_OWNERS = (QuotaOwner("ANONYMOUS", NONE), QuotaOwner(NONE, "tester"), QuotaOwner(DEFAULT, NONE))
_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")

_NOT_ANYONE = AccessEntry("User:*", "*", AclOperation.ALL, AclPermission.DENY)
_READ = AccessEntry("User:*", "*", AclOperation.READ, AclPermission.ALLOW)
_WRITE_ID = AccessEntry("User:b", "*", AclOperation.WRITE, AclPermission.ALLOW)
#: A request of each kind that a grant is remembered for.
_ONCE: tuple[Step, ...] = (
    ("produce", ("t", 1)),
    ("fetch", (1, 0)),
    ("open", (1, 0)),
    ("go on", (1, 0)),
)

STEPS = st.one_of(
    st.tuples(
        st.just("rules"), st.tuples(st.sampled_from(_PATTERNS), st.lists(_ENTRIES, max_size=2))
    ),
    st.tuples(st.just("rules"), st.tuples(st.sampled_from(_PATTERNS), st.just([_ALL]))),
    st.tuples(st.just("principal"), st.sampled_from(_USERS)),
    st.tuples(
        st.just("quota"),
        st.tuples(
            st.sampled_from(_OWNERS),
            st.sampled_from(({}, {}, {}, *({name: "1"} for name in _QUOTAS))),
        ),
    ),
    st.tuples(st.just("level"), st.sampled_from((logging.INFO, logging.DEBUG, 5))),
    st.tuples(st.just("wait"), st.sampled_from((10, 1_000, 40_000))),
    *(
        st.tuples(
            st.just("produce"),
            st.tuples(st.sampled_from(("t", "t", "u")), st.sampled_from((1, -1, 0))),
        )
        for _ in range(3)
    ),
    *(
        st.tuples(
            st.sampled_from(("fetch", "fetch", "open", "go on")),
            st.tuples(st.sampled_from((0, 1)), st.sampled_from((0, 300))),
        )
        for _ in range(3)
    ),
)


class _AsksEach(AclAuthorizer):
    """Decides each request by the rules: no session remembers a grant."""

    _versions = count()

    @property
    def version(self) -> int:
        return next(self._versions)

    def logs_grants(self) -> bool:
        return True


class _Ruled:
    """A broker with rules and quotas, and a client of it."""

    def __init__(self, authorizer: type[AclAuthorizer], *, is_fast_path: bool, is_open: bool):
        self.cache, self.limits = AclCache(), QuotaLimits()
        stage = self.stage = DataStage(is_fast_path=is_fast_path)
        quotas = EnforcedQuotas(
            self.limits,
            QuotaWindows(11, 1000, 11, 1000),
            clock=stage.clock,
            timers=stage.timers,
            work_ns=lambda: 0,
            sanitize=str,
        )
        self.admission = stage.table.admission
        rules = authorizer(self.cache, frozenset({"User:admin"}), allows_without_rules=is_open)
        self.admission.change(rules, quotas)
        self.stage.add("u", 0)
        self._session_id = self._epoch = 0

    def take(self, kind: str, what: Any) -> None:
        """Make a change, or send a request."""
        stage = self.stage
        if stage.client.is_closed:
            stage.connect()
            self._session_id = 0
        match kind:
            case "rules":
                was_empty = self.cache.is_empty
                self.cache.set(*what)
                if self.cache.is_empty is not was_empty:
                    self.admission.refresh()
            case "principal":
                for session in self.admission.sessions:
                    session.authenticate(what)
            case "quota":
                self.limits.take(*what)
                self.admission.refresh()
            case "level":
                _LOG.setLevel(what)
            case "wait":
                stage.pass_time(what)
            case "produce":
                topic, acks = what
                record = Record(0, NOW_MS, TimestampType.CREATE_TIME, b"k", b"v" * 40)
                request = produce_request({topic: [(0, bytes(build_batch([record])))]}, acks=acks)
                stage.send_raw("Produce", 9, message_codec("ProduceRequest", 9).encode(request))
            case _:
                self._fetch(kind, *what)

    def _fetch(self, kind: str, behind: int, wait_ms: int) -> None:
        """Fetch without a session, for a new one, or the next of the last session."""
        stage, more = self.stage, {"max_wait_ms": wait_ms, "session_epoch": -1}
        offset = max(stage.manager.find(T0).log.log_end_offset - behind, 0)
        if kind == "open":
            more["session_epoch"] = 0
        elif kind == "go on" and self._session_id:
            self._epoch += 1
            more |= {"session_id": self._session_id, "session_epoch": self._epoch}
        request = fetch_request(17, {0: offset}, **more)
        before = len(stage.frames)
        stage.send_raw("Fetch", 17, message_codec("FetchRequest", 17).encode(request))
        if kind == "open" and len(stage.frames) > before:
            # Behind correlation id, tags, throttle time and error.
            self._session_id, self._epoch = int.from_bytes(stage.frames[-1][11:15]), 0


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Yield the lines of the authorizer's log, which is at INFO again afterwards."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    before = _LOG.level
    _LOG.setLevel(logging.INFO)
    _LOG.addHandler(handler)
    try:
        yield lines
    finally:
        _LOG.removeHandler(handler)
        _LOG.setLevel(before)


@settings(max_examples=200, deadline=None, derandomize=True)
@example(
    steps=[*_ONCE, ("level", logging.DEBUG), *_ONCE, ("level", 5), *_ONCE, ("level", 20), *_ONCE],
    is_open=False,
)
@example(
    steps=[("rules", (_PATTERNS[3], [_NOT_B])), *_ONCE, ("principal", "User:b"), *_ONCE],
    is_open=False,
)
@example(
    steps=[*_ONCE, ("rules", (_PATTERNS[2], [_NOT_ANYONE])), *_ONCE, *_ONCE, ("wait", 1000)],
    is_open=True,
)
@example(
    steps=[*_ONCE, ("rules", (_PATTERNS[0], [_READ, _WRITE_ID])), *_ONCE, *_ONCE],
    is_open=False,
)
@example(
    steps=[*_ONCE, ("quota", (_OWNERS[0], {"producer_byte_rate": "9"})), *_ONCE]
    + [("wait", 40_000), *_ONCE] * 3,
    is_open=False,
)
@example(
    steps=[
        *_ONCE,
        ("fetch", (0, 300)),
        ("quota", (_OWNERS[0], {"consumer_byte_rate": "1"})),
        ("produce", ("t", 1)),
        ("wait", 1_000),
    ],
    is_open=False,
)
@given(steps=st.lists(STEPS, min_size=4, max_size=16), is_open=st.booleans())
def test_a_session_is_served_as_the_rules_would_decide_now(
    steps: list[Step], is_open: bool
) -> None:
    seen = []
    for authorizer, is_fast_path in ((AclAuthorizer, True), (_AsksEach, False)):
        with _logged() as lines:
            ruled = _Ruled(authorizer, is_fast_path=is_fast_path, is_open=is_open)
            ruled.take("rules", (_PATTERNS[0], [_ALL]))
            for kind, what in steps:
                ruled.take(kind, what)
            stage = ruled.stage
            stage.pass_time(1_000)
            ends = [log.log.log_end_offset for log in stage.manager.partitions.values()]
            seen.append((stage.frames, stage.closed, stage.bad, stage.faults, ends, lines))
    assert seen[0] == seen[1]
