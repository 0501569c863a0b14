"""The placement in which rates are levelled: numbers of its own, the rules of the search."""

from __future__ import annotations

from engine.model import TopicPartition
from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints
from engine.planner.placement_state import PlacementState
from engine.planner.rate_balancing import RateBalancing, RateState

#: The larger a partition, the less is written to it: by size and by rate they stand in turn.
MODEL = ClusterModel(
    [BrokerModel(number) for number in (1, 2, 3)],
    [
        PartitionModel("t", 0, (1,), 1, size_bytes=10, write_bytes_per_s=300),
        PartitionModel("t", 1, (1,), 1, size_bytes=20, write_bytes_per_s=200),
        PartitionModel("t", 2, (1,), 1, size_bytes=30, write_bytes_per_s=100),
    ],
)


def number_of(state: PlacementState, partition: int) -> int:
    names = [p.name for p in state.partitions]
    return names.index(TopicPartition("t", partition))


def test_a_replica_that_an_earlier_search_barred_does_not_come_back_for_the_sake_of_rates() -> None:
    search = PlacementState(MODEL, PlanConstraints())
    search.barred.add((number_of(search, 0), search.index_of[2]))
    rates = RateState(search)
    admitted = {
        (partition, broker_id)
        for partition in (0, 1, 2)
        for broker_id in (2, 3)
        if rates.is_admitted(number_of(rates, partition), rates.index_of[broker_id])
    }
    assert {(0, 3), (1, 2), (1, 3), (2, 2), (2, 3)} == admitted


def test_replicas_stand_where_the_search_has_placed_them_and_are_handed_back() -> None:
    search = PlacementState(MODEL, PlanConstraints())
    one, two, three = (search.index_of[number] for number in (1, 2, 3))
    search.move(number_of(search, 2), one, two)
    rates = RateState(search)
    assert [300 + 200, 100, 0] == [rates.held_bytes[broker] for broker in (one, two, three)]
    assert [10 + 20, 30, 0] == [rates.stored_bytes[broker] for broker in (one, two, three)]
    rates.move(number_of(rates, 0), one, three)
    assert [20, 30, 10] == [rates.stored_bytes[broker] for broker in (one, two, three)]
    rates.hand_back()
    assert [20, 30, 10] == [search.held_bytes[broker] for broker in (one, two, three)]
    assert [three] == search.replicas[number_of(search, 0)]


def test_replicas_of_one_size_are_exchanged_on_brokers_that_hold_more_bytes_than_they_may() -> None:
    rows = [(1, 30), (1, 20), (2, 10), (2, 0)]
    partitions = [
        PartitionModel("t", number, (broker,), 1, size_bytes=10, write_bytes_per_s=rate)
        for number, (broker, rate) in enumerate(rows)
    ]
    model = ClusterModel([BrokerModel(1), BrokerModel(2)], partitions)
    rates = RateState(PlacementState(model, PlanConstraints()))
    assert 1.0 == RateBalancing(rates, [15, 15]).level()
    assert [30, 30] == rates.held_bytes
    assert [20, 20] == rates.stored_bytes
