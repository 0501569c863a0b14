from __future__ import annotations

from engine.planner.batch_order import ChangeQueue, batch_changes
from engine.planner.constraints import PlanConstraints
from engine.planner.log_dir_balancing import batch_log_dir_moves
from engine.planner.plan import PartitionChange
from engine.planner.planner import drain
from tests.unit.planner.clusters import cluster, moved


def change(number: int, old: int, new: int, size: int = 10) -> PartitionChange:
    return PartitionChange("t", number, (old,), (new,), old, new, size_bytes=size)


def test_a_broker_takes_part_in_so_many_moves_at_a_time() -> None:
    changes = [change(n, 1, 2) for n in range(5)]
    batches, given_up = batch_changes(changes, {1: 50}, {}, 2)
    assert ([2, 2, 1], []) == ([len(batch) for batch in batches], given_up)


def test_the_source_counts_too() -> None:
    changes = [change(0, 1, 2), change(1, 1, 3), change(2, 4, 3)]
    batches, _ = batch_changes(changes, {}, {}, 1)
    assert 2 == len(batches)


def test_a_move_waits_for_the_room_that_another_makes() -> None:
    changes = [change(0, 1, 2), change(1, 2, 3)]
    batches, given_up = batch_changes(changes, {1: 10, 2: 10, 3: 0}, {2: 15}, 5)
    assert ([[1], [0]], []) == (batches, given_up)


def test_a_broker_may_become_full_and_no_more() -> None:
    changes = [change(0, 1, 2), change(1, 1, 2)]
    assert ([[0, 1]], []) == batch_changes(changes, {1: 20, 2: 5}, {2: 25}, 5)
    assert ([[0]], [1]) == batch_changes(changes, {1: 20, 2: 5}, {2: 24}, 5)


def test_two_full_brokers_cannot_swap() -> None:
    changes = [change(0, 1, 2), change(1, 2, 1)]
    assert ([], [0, 1]) == batch_changes(changes, {1: 10, 2: 10}, {1: 15, 2: 15}, 5)


def test_what_must_move_goes_first_then_the_largest() -> None:
    changes = [
        change(0, 1, 2, 10),
        change(1, 1, 2, 30),
        change(2, 1, 2, 5)._replace(is_mandatory=True),
    ]
    assert [[2], [1], [0]] == batch_changes(changes, {}, {}, 1)[0]


def test_a_small_change_far_down_a_queue_is_found() -> None:
    changes = [*(change(n, 1, 2, 100) for n in range(40)), change(40, 1, 2, 5)]
    batches, given_up = batch_changes(changes, {1: 5000}, {2: 50}, 5)
    assert ([[40]], list(range(40))) == (batches, given_up)


def test_an_execution_gets_the_changes_that_may_start_beside_those_that_run() -> None:
    changes = [change(0, 1, 2), change(1, 3, 2), change(2, 4, 5)]
    queue = ChangeQueue(changes, {}, {}, 1)
    assert [0, 2] == queue.start()
    assert [] == queue.start()
    queue.finish([2])
    assert [] == queue.start()
    queue.finish([0])
    assert [1] == queue.start()
    assert queue.is_empty()


def test_each_end_makes_room_for_one_more_at_its_source_and_its_target() -> None:
    # By target: the changes to broker 2 wait for each other; by source: those from broker 1.
    for changes in (
        [change(0, 1, 2), change(1, 3, 2), change(2, 4, 2)],
        [change(0, 1, 2), change(1, 1, 3), change(2, 1, 4)],
    ):
        queue = ChangeQueue(changes, {}, {}, 1)
        for number in range(3):
            assert [number] == queue.start()
            queue.finish([number])
        assert queue.is_empty()


def test_a_plan_leaves_out_what_no_order_leaves_room_for() -> None:
    model = cluster([None] * 3, [(1,), (1,), (2,)], [10, 10, 10], capacity={2: 25, 3: 5})
    plan = drain(model, [1])
    assert 1 == len(moved(plan))
    assert 1 == len(plan.unmet)


def test_a_broker_changes_so_many_directories_at_a_time_the_largest_first() -> None:
    def directory_change(number: int, *broker_ids: int) -> PartitionChange:
        dirs = ("/a",) * len(broker_ids), ("/b",) * len(broker_ids)
        made = PartitionChange("t", number, broker_ids, broker_ids, 1, 1, size_bytes=number)
        return made._replace(old_log_dirs=dirs[0], new_log_dirs=dirs[1])

    changes = [directory_change(number, 1) for number in range(5)]
    changes += [directory_change(5, 2), directory_change(6, 1, 2)]
    batches = batch_log_dir_moves(changes, PlanConstraints(moves_per_broker=2))
    assert [[6, 5, 4], [3, 2], [1, 0]] == batches
