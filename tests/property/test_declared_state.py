"""Steps of declared states, carried out on a model: nothing is left to do, however they came."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.declared.comparison import compare
from engine.declared.resources import (
    ALL_BROKERS,
    ClusterSetting,
    ClusterTopic,
    CurrentState,
    DeclaredState,
    DeclaredTopic,
    DeclaredUser,
    ResourceKind,
)
from engine.declared.steps import (
    AddPartitions,
    ChangeQuotas,
    ChangeSettings,
    CreateRule,
    CreateTopic,
    DeleteCredential,
    DeleteRule,
    DeleteTopic,
    MoveReplicas,
    SetCredential,
    StateStep,
)
from engine.security.scram import ITERATIONS_MIN, ScramMechanism
from tests.unit.declared.states import BROKERS, rule

_KEYS = st.sampled_from(("retention.ms", "segment.ms", "min.insync.replicas"))
_VALUES = st.sampled_from(("1", "2", "3"))
_NAMES = st.sampled_from(("a", "b", "c"))
_REPLICAS = st.permutations((1, 2, 3)).flatmap(
    lambda ids: st.integers(1, 3).map(lambda count: tuple(ids[:count]))
)
_PLACEMENT = st.lists(_REPLICAS, min_size=1, max_size=3).map(tuple)
_SET = st.builds(ClusterSetting, _VALUES, st.none(), st.booleans(), st.just(False))
_MECHANISMS = st.sampled_from(tuple(ScramMechanism))
_RULES = st.frozensets(_NAMES.map(rule))
_ENTITIES = _NAMES.map(lambda name: (("user", name),))
_QUOTAS = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from((1.0, 2.0)), min_size=1)
_BROKERS = st.sampled_from((ALL_BROKERS, "1", "2"))


@st.composite
def declared_topics(draw: st.DrawFn) -> DeclaredTopic:
    settings = draw(st.dictionaries(_KEYS, st.none() | _VALUES))
    if draw(st.booleans()):
        return DeclaredTopic(placement=draw(_PLACEMENT), settings=settings)
    partitions = draw(st.none() | st.integers(1, 4))
    return DeclaredTopic(partitions, draw(st.none() | st.integers(1, 3)), (), settings)


DECLARED = st.builds(
    DeclaredState,
    kinds=st.just(frozenset(ResourceKind)),
    topics=st.dictionaries(_NAMES, declared_topics()),
    users=st.dictionaries(
        _NAMES,
        st.builds(
            DeclaredUser,
            st.dictionaries(_MECHANISMS, st.none() | st.integers(4096, 4098), min_size=1),
            st.none(),
        ),
    ),
    acls=_RULES,
    quotas=st.dictionaries(_ENTITIES, _QUOTAS),
    brokers=st.dictionaries(_BROKERS, st.dictionaries(_KEYS, st.none() | _VALUES)),
    kept_topics=st.just(()),
)
CURRENT = st.builds(
    CurrentState,
    broker_ids=st.just(BROKERS),
    topics=st.dictionaries(
        _NAMES, st.builds(ClusterTopic, _PLACEMENT, st.dictionaries(_KEYS, _SET), st.just(False))
    ),
    users=st.dictionaries(
        _NAMES, st.dictionaries(_MECHANISMS, st.integers(4096, 4098), min_size=1)
    ),
    acls=_RULES,
    quotas=st.dictionaries(_ENTITIES, _QUOTAS),
    brokers=st.fixed_dictionaries(
        {name: st.dictionaries(_KEYS, _SET) for name in (ALL_BROKERS, "1", "2")}
    ),
)


class Model:
    """A cluster that carries out steps, and refuses what brokers refuse."""

    def __init__(self, state: CurrentState) -> None:
        self.topics = dict(state.topics)
        self.users = {name: dict(found) for name, found in state.users.items()}
        self.acls = set(state.acls)
        self.quotas = {entity: dict(found) for entity, found in state.quotas.items()}
        self.brokers = {name: dict(found) for name, found in state.brokers.items()}

    @property
    def state(self) -> CurrentState:
        users = {name: found for name, found in self.users.items() if found}
        quotas = {entity: found for entity, found in self.quotas.items() if found}
        acls = frozenset(self.acls)
        return CurrentState(BROKERS, self.topics, users, acls, quotas, self.brokers)

    def carry_out(self, step: StateStep) -> None:
        match step.operation:
            case CreateTopic(topic, partitions, factor, placement, settings):
                assert topic not in self.topics
                assert len(set(map(len, placement))) <= 1
                replicas = placement or ((1, 2, 3)[: factor or 1],) * (partitions or 1)
                self.topics[topic] = ClusterTopic(replicas, _as_set(settings))
            case AddPartitions(topic, total, added):
                there = self.topics[topic]
                count = total - there.partitions
                assert count > 0
                assert not added or len(added) == count
                assert all(len(row) == len(there.placement[0]) for row in added)
                added = added or (there.placement[0],) * count
                self.topics[topic] = there._replace(placement=(*there.placement, *added))
            case MoveReplicas(topic, factor, placement):
                there = self.topics[topic]
                rows = placement or tuple((1, 2, 3)[:factor] for _ in there.placement)
                assert len(rows) <= there.partitions
                moved = (*rows, *there.placement[len(rows) :])
                self.topics[topic] = there._replace(placement=moved)
            case ChangeSettings(ResourceKind.TOPICS, topic, settings):
                there = self.topics[topic]
                self.topics[topic] = there._replace(settings=_changed(there.settings, settings))
            case ChangeSettings(_, broker, settings):
                self.brokers[broker] = _changed(self.brokers[broker], settings)
            case _:
                self._carry_out_more(step)

    def _carry_out_more(self, step: StateStep) -> None:
        match step.operation:
            case SetCredential(user, mechanism, iterations, _):
                self.users.setdefault(user, {})[mechanism] = iterations or ITERATIONS_MIN
            case ChangeQuotas(entity, quotas):
                there = self.quotas.setdefault(entity, {})
                there |= {key: value for key, value in quotas.items() if value is not None}
                for key in [key for key, value in quotas.items() if value is None]:
                    del there[key]
            case CreateRule(created):
                assert created not in self.acls
                self.acls.add(created)
            case DeleteRule(deleted):
                self.acls.remove(deleted)
            case DeleteCredential(user, mechanism):
                del self.users[user][mechanism]
            case DeleteTopic(topic):
                del self.topics[topic]
            case other:
                raise AssertionError(other)


def _as_set(settings: Any) -> dict[str, ClusterSetting]:
    return {name: ClusterSetting(value, None, is_set=True) for name, value in settings.items()}


def _changed(current: Any, settings: Any) -> dict[str, ClusterSetting]:
    kept = {name: setting for name, setting in current.items() if name not in settings}
    return kept | _as_set({k: value for k, value in settings.items() if value is not None})


@given(DECLARED, CURRENT, st.booleans())
def test_carried_out_steps_leave_nothing_to_do(
    declared: DeclaredState, current: CurrentState, prunes: bool
) -> None:
    comparison = compare(declared, current, prunes=prunes)
    model = Model(current)
    for step in comparison.steps:
        assert prunes or not step.deletes
        model.carry_out(step)
    left = compare(declared, model.state, prunes=prunes)
    assert [] == left.steps
    # What cannot be had is as it was.
    assert list(map(str, comparison.faults)) == list(map(str, left.faults))


@given(DECLARED, CURRENT, st.integers(0, 20))
def test_steps_that_were_ended_early_are_gone_on_with(
    declared: DeclaredState, current: CurrentState, done: int
) -> None:
    model = Model(current)
    for step in compare(declared, current, prunes=True).steps[:done]:
        model.carry_out(step)
    for step in compare(declared, model.state, prunes=True).steps:
        model.carry_out(step)
    assert [] == compare(declared, model.state, prunes=True).steps
