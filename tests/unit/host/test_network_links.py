"""PlaceLinks with faults: what passes, waits or is late, in order; connections over them."""

from __future__ import annotations

import pytest

from engine.host.link_faults import (
    STORE,
    LinkFaults,
    LinkQuality,
    SlowPlace,
    decode_faults,
    encode_faults,
    packet_count,
    retransmission_ms,
)
from engine.host.linked_network import LinkedConnection, LinkedNetwork
from engine.host.memory import ManualClock, SeededEntropy
from engine.host.memory_network import MemoryNetwork, MemoryTimers
from engine.host.network_links import PlaceLinks
from engine.host.ports import Connection, PauseReason
from engine.limits import LINK_RETRANSMISSIONS_MAX
from tests.unit.host.listening import Told

PARTED = LinkFaults().with_partition([["1", "2"], ["3", STORE]])
HEALED = LinkFaults()


def slow(place: str, delay_ms: int = 0, loss: float = 0.0) -> LinkFaults:
    return LinkFaults().with_slow(place, SlowPlace(delay_ms, loss))


# What faults say


def test_places_of_different_groups_do_not_reach_each_other() -> None:
    assert PARTED.is_cut("1", "3")
    assert PARTED.is_cut(STORE, "2")
    assert not PARTED.is_cut("1", "2")
    assert not PARTED.is_cut("3", STORE)


def test_a_partition_and_a_slow_place_are_each_a_fault() -> None:
    assert not HEALED.is_any()
    assert PARTED.is_any()
    assert slow("1", 50).is_any()
    faults = slow("3", 50).with_partition([["1"], ["2"]])
    pairs = {("1", "2"), ("1", "3"), ("1", "4"), ("3", "4"), ("3", "3")}
    assert {("1", "2"), ("1", "3"), ("3", "4")} == {p for p in pairs if faults.is_faulty(*p)}


def test_a_place_in_no_group_reaches_all_and_itself() -> None:
    assert not any(PARTED.is_cut("4", place) for place in ("1", "3", STORE))
    assert not PARTED.is_cut("1", "1")


def test_delays_of_both_ends_add_up_and_losses_are_independent() -> None:
    faults = slow("1", 50, 0.1).with_slow("2", SlowPlace(5, 0.2))
    quality = faults.quality("2", "1")
    assert quality is not None
    assert (55, pytest.approx(0.28)) == quality
    assert LinkQuality(50, pytest.approx(0.1)) == faults.quality("1", "3")
    assert faults.quality("3", "4") is None


def test_a_link_that_loses_everything_is_cut() -> None:
    assert slow("1", loss=1.0).is_cut("1", "2")
    assert not slow("1", loss=0.9999).is_cut("1", "2")


def test_a_place_without_delay_and_loss_is_not_slow() -> None:
    faults = slow("1", 50).with_slow("1", SlowPlace())
    assert not faults.is_any()


def test_time_outs_of_tcp_double_up_to_two_minutes() -> None:
    assert [0, 300, 900, 2100] == [retransmission_ms(50, losses) for losses in range(4)]
    assert 120_000 == retransmission_ms(0, 15) - retransmission_ms(0, 14)


def test_a_frame_is_as_many_packets_as_its_bytes_fill() -> None:
    assert [1, 1, 1, 2] == [packet_count(size) for size in (0, 1, 1448, 1449)]


def test_faults_are_read_as_they_were_written() -> None:
    faults = PARTED.with_slow("2", SlowPlace(50, 0.01))
    assert faults == decode_faults(encode_faults(faults))
    with pytest.raises(ValueError, match="a loss of nan"):
        decode_faults({"groups": [], "slow": {"1": {"delay_ms": 1, "loss": float("nan")}}})


# Channels


class Stage:
    """PlaceLinks, and what has arrived over one channel, with the time."""

    def __init__(self, faults: LinkFaults = HEALED) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.links = PlaceLinks(self.timers, self.clock, SeededEntropy())
        self.links.set_faults(faults)
        self.channel = self.links.open_channel("1", "3")
        self.arrived: list[tuple[str, int]] = []

    def send(self, *names: str, size_bytes: int = 0) -> None:
        for name in names:
            self.channel.send(lambda name=name: self.arrive(name), size_bytes)  # type: ignore[misc]

    def arrive(self, name: str) -> None:
        self.arrived.append((name, self.clock.monotonic_ms()))

    def pass_time(self, duration_ms: int) -> None:
        for _ in range(duration_ms):
            self.clock.advance(1)
            self.timers.run_until_idle()


def test_without_a_fault_what_is_sent_arrives_at_once() -> None:
    stage = Stage()
    stage.send("a")
    assert [("a", 0)] == stage.arrived
    assert 0 == stage.timers.waiting_count


def test_over_a_cut_link_it_waits_and_arrives_in_order_once_healed() -> None:
    stage = Stage(PARTED)
    stage.send("a", "b")
    stage.pass_time(100)
    assert [] == stage.arrived
    stage.links.set_faults(HEALED)
    # Not before the others: order is kept.
    stage.send("c")
    stage.timers.run_until_idle()
    assert ["a", "b", "c"] == [name for name, _ in stage.arrived]
    assert stage.channel.is_clear


@pytest.mark.parametrize("is_cut_first", [True, False])
def test_what_waited_for_time_outs_arrives_once_the_link_is_healed(*, is_cut_first: bool) -> None:
    stage = Stage(slow("3", 1_000, 0.99))
    stage.send("a", size_bytes=100_000)
    if is_cut_first:
        stage.links.set_faults(PARTED)
    stage.links.set_faults(HEALED)
    stage.send("b")
    stage.pass_time(1_000)
    assert ["a", "b"] == [name for name, _ in stage.arrived]
    assert stage.channel.is_clear


def test_a_delay_holds_up_each_but_not_one_behind_the_other() -> None:
    stage = Stage(slow("3", 50))
    stage.send("a")
    stage.pass_time(10)
    stage.send("b")
    stage.pass_time(100)
    assert [("a", 50), ("b", 60)] == stage.arrived


def test_what_is_under_way_when_the_link_is_cut_is_sent_again() -> None:
    stage = Stage(slow("3", 50))
    stage.send("a")
    stage.pass_time(10)
    stage.links.set_faults(PARTED)
    stage.pass_time(100)
    assert [] == stage.arrived
    stage.links.set_faults(HEALED)
    stage.timers.run_until_idle()
    assert [("a", 110)] == stage.arrived


def test_a_lost_packet_costs_a_time_out_and_holds_up_what_follows() -> None:
    stage = Stage(slow("3", 10, 0.5))
    stage.send(*map(str, range(100)))
    stage.pass_time(30_000)
    assert [*map(str, range(100))] == [name for name, _ in stage.arrived]
    times = {at_ms for _, at_ms in stage.arrived}
    assert times <= {10 + retransmission_ms(10, losses) for losses in range(12)}
    assert max(times) > 10


def test_the_larger_a_frame_the_likelier_it_is_late() -> None:
    def late(size_bytes: int) -> int:
        count = 0
        for _ in range(200):
            stage.channel = stage.links.open_channel("1", "3")
            began_ms = stage.clock.monotonic_ms()
            stage.send("x", size_bytes=size_bytes)
            stage.pass_time(2000)
            count += stage.arrived.pop()[1] - began_ms >= 200
            stage.channel.close()
        return count

    stage = Stage(slow("3", 0, 0.01))
    assert late(100) < 20 < late(200_000)


def test_a_channel_that_is_given_up_brings_nothing_and_leaves_no_timer() -> None:
    stage = Stage(slow("3", 50))
    stage.send("a")
    stage.channel.close()
    stage.pass_time(100)
    assert [] == stage.arrived
    assert (0, 0) == (stage.timers.waiting_count, stage.links.channel_count)


def test_what_arrives_may_give_the_channel_up_and_nothing_follows() -> None:
    stage = Stage(slow("3", 50))

    def give_up() -> None:
        stage.arrive("a")
        stage.channel.close()

    stage.channel.send(give_up)
    stage.pass_time(10)
    stage.send("b")
    stage.pass_time(200)
    assert [("a", 50)] == stage.arrived
    assert 0 == stage.timers.waiting_count


def test_a_packet_is_sent_again_as_often_as_tcp_does_and_then_arrives() -> None:
    class Lossy(SeededEntropy):
        """Every packet is lost."""

        def random_below(self, bound: int) -> int:
            return 0

    stage = Stage(slow("3", 0, 0.5))
    stage.links.entropy = Lossy()
    stage.send("a")
    assert 1 == stage.timers.waiting_count
    stage.clock.advance(retransmission_ms(0, LINK_RETRANSMISSIONS_MAX) - 1)
    stage.timers.run_until_idle()
    assert [] == stage.arrived
    stage.pass_time(1)
    assert ["a"] == [name for name, _ in stage.arrived]


@pytest.mark.parametrize(("draw", "arrives_ms"), [(9_999, 200), (10_000, 0)])
def test_a_packet_is_lost_if_the_draw_is_below_the_loss(draw: int, arrives_ms: int) -> None:
    class Drawn(SeededEntropy):
        """One draw that is given, then none that loses."""

        def __init__(self) -> None:
            super().__init__()
            self.draws = [draw]

        def random_below(self, bound: int) -> int:
            return self.draws.pop() if self.draws else bound - 1

    stage = Stage(slow("3", 0, 0.01))
    stage.links.entropy = Drawn()
    stage.send("a")
    stage.timers.run_until_idle()
    stage.pass_time(500)
    assert [("a", arrives_ms)] == stage.arrived


def test_a_listener_is_notified_of_each_change_after_the_channels_until_it_is_removed() -> None:
    stage = Stage()
    told: list[bool] = []
    end = stage.links.add_listener(lambda: told.append(stage.channel.is_cut))
    stage.links.set_faults(PARTED)
    stage.links.set_faults(PARTED.with_partition(PARTED.groups))
    stage.links.set_faults(HEALED)
    assert [True, False] == told
    end()
    stage.links.set_faults(PARTED)
    assert [True, False] == told


@pytest.mark.parametrize("faults", [PARTED, slow("3", 50)])
def test_a_channel_that_is_released_leaves_no_timer_and_no_place(faults: LinkFaults) -> None:
    stage = Stage(faults)
    stage.send("a")
    stage.channel.deliver_all()
    assert [("a", 0)] == stage.arrived
    assert (0, 0) == (stage.timers.waiting_count, stage.links.channel_count)


def test_a_channel_that_is_released_brings_all_now() -> None:
    stage = Stage(PARTED)
    stage.send("a", "b")
    stage.channel.deliver_all()
    stage.send("c")
    assert [("a", 0), ("b", 0), ("c", 0)] == stage.arrived


# Connections


class Wire:
    """A connection from 1 to 3 over links, and what both ends say."""

    def __init__(self, faults: LinkFaults = HEALED) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.links = PlaceLinks(self.timers, self.clock, SeededEntropy())
        self.links.set_faults(faults)
        network = MemoryNetwork(self.timers)
        self.server: list[Connection] = []
        self.served: list[bytes] = []
        self.got: list[bytes] = []
        self.ends: list[str] = []
        network.listen("there", 9092, self._accept, Told().options())
        self.client = LinkedNetwork(network, self.links, "1", "3").connect("there", 9092)
        assert isinstance(self.client, LinkedConnection)
        self.client.on_frame = lambda frame: self.got.append(bytes(frame))
        self.client.on_close = lambda reason: self.ends.append(f"client: {reason}")
        self.turn()

    def _accept(self, connection: Connection) -> None:
        self.server.append(connection)
        connection.on_frame = lambda frame: self.served.append(bytes(frame))
        connection.on_close = lambda reason: self.ends.append(f"server: {reason}")

    def turn(self, duration_ms: int = 0) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


def test_without_a_fault_calls_go_past_the_link() -> None:
    wire = Wire()
    below = wire.client._connection  # type: ignore[attr-defined]
    assert wire.client.send == below.send
    assert below.on_frame is wire.client.on_frame
    wire.links.set_faults(PARTED)
    wire.links.set_faults(HEALED)
    assert wire.client.send == below.send
    assert below.on_frame is wire.client.on_frame


def test_calls_go_past_the_link_again_once_all_that_waited_has_arrived() -> None:
    wire = Wire()
    below = wire.client._connection  # type: ignore[attr-defined]
    wire.links.set_faults(PARTED)
    wire.client.send([b"question"])
    wire.server[0].send([b"news"])
    wire.turn()
    wire.links.set_faults(HEALED)
    assert wire.client.send != below.send
    wire.turn()
    assert wire.client.send == below.send
    assert below.on_frame is wire.client.on_frame


def test_a_connection_that_is_cut_says_nothing_and_goes_on_when_it_is_healed() -> None:
    wire = Wire()
    wire.links.set_faults(PARTED)
    wire.client.send([b"question"])
    wire.server[0].send([b"news"])
    wire.turn(60_000)
    assert ([], [], []) == (wire.served, wire.got, wire.ends)
    wire.links.set_faults(HEALED)
    wire.turn()
    assert ([b"question"], [b"news"], []) == (wire.served, wire.got, wire.ends)


def test_both_directions_are_late() -> None:
    wire = Wire(slow("1", 50))
    wire.client.send([b"a", b"b"])
    wire.turn(49)
    assert [] == wire.served
    wire.turn(1)
    assert [b"ab"] == wire.served
    wire.server[0].send([b"c"])
    wire.turn()
    wire.turn(49)
    assert [] == wire.got
    wire.turn(1)
    assert [b"c"] == wire.got


def test_of_a_listener_both_directions_of_each_connection_are_linked() -> None:
    clock = ManualClock()
    timers = MemoryTimers(clock)
    links = PlaceLinks(timers, clock, SeededEntropy())
    network = MemoryNetwork(timers)
    accepted: list[Connection] = []
    options = Told().options()
    LinkedNetwork(network, links, "3", "1").listen("there", 9092, accepted.append, options)
    client = network.connect("there", 9092)
    got: list[bytes] = []
    client.on_frame = lambda frame: got.append(bytes(frame))
    timers.run_until_idle()
    (server,) = accepted
    served: list[bytes] = []
    server.on_frame = lambda frame: served.append(bytes(frame))
    links.set_faults(PARTED)
    client.send([b"question"])
    server.send([b"news"])
    timers.run_until_idle()
    assert ([], []) == (served, got)
    links.set_faults(HEALED)
    timers.run_until_idle()
    assert ([b"question"], [b"news"]) == (served, got)


def test_a_linked_connection_takes_no_frames_while_it_is_paused() -> None:
    wire = Wire()
    wire.client.pause(PauseReason.SLOTS)
    wire.server[0].send([b"news"])
    wire.turn()
    assert [] == wire.got
    wire.client.resume(PauseReason.SLOTS)
    wire.turn()
    assert [b"news"] == wire.got


def test_an_end_is_noticed_once_the_link_lets_it_through() -> None:
    wire = Wire()
    wire.links.set_faults(PARTED)
    wire.server[0].send([b"last"])
    wire.turn()
    wire.server[0].close("it stops")
    wire.turn()
    assert ["server: it stops"] == wire.ends
    wire.links.set_faults(HEALED)
    wire.turn()
    assert [b"last"] == wire.got
    assert ["server: it stops", "client: closed by the peer"] == wire.ends
    assert 0 == wire.links.channel_count


def test_one_end_gives_up_over_a_cut_link_and_the_other_learns_of_it_later() -> None:
    wire = Wire()
    wire.links.set_faults(PARTED)
    wire.client.send([b"question"])
    wire.client.close("no answer in time")
    wire.turn()
    assert ["client: no answer in time"] == wire.ends
    wire.links.set_faults(HEALED)
    wire.turn()
    # What was sent before has its place before the end.
    assert [b"question"] == wire.served
    assert ["client: no answer in time", "server: closed by the peer"] == wire.ends
    assert 0 == wire.links.channel_count


def test_a_connection_that_began_and_ended_over_a_cut_link_never_was() -> None:
    wire = Wire(PARTED)
    wire.client.send([b"hello"])
    wire.server[0].send([b"news"])
    wire.turn()
    wire.server[0].close("nobody said anything")
    wire.turn()
    assert ["server: nobody said anything", "client: closed by the peer"] == wire.ends
    wire.links.set_faults(HEALED)
    wire.turn()
    assert ([], []) == (wire.served, wire.got)
    assert 0 == wire.links.channel_count


def test_what_a_closed_connection_still_gets_is_dropped() -> None:
    wire = Wire(slow("1", 50))
    wire.server[0].send([b"late"])
    wire.turn()
    wire.client.close("enough")
    wire.turn(200)
    assert [] == wire.got
    assert ["client: enough", "server: closed by the peer"] == wire.ends
    assert (0, 0) == (wire.links.channel_count, wire.timers.waiting_count)
