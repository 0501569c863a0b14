"""Channels between coordinators and leaders: a closed channel awaits no response."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from engine.broker.peers import LocalChannel, Peers, Serve
from engine.broker.transaction_channels import TransactionChannels
from engine.client.connection import Call
from engine.client.errors import ConnectionLost, NoCommonVersion, Unreachable
from engine.errors import EngineError, api_error
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, MetadataCache, PartitionMetadata
from engine.wire import messages
from engine.wire.structs import Message

CALL = Call("WriteTxnMarkers", messages.WriteTxnMarkersRequest())
OTHER = Call("AddPartitionsToTxn", messages.AddPartitionsToTxnRequest())


class Stage:
    """Channels to broker 2 of this process, whose responses are kept by the test."""

    def __init__(self) -> None:
        self.responses: list[Promise[Message]] = []
        self.made = 0
        serving: dict[int, Serve] = {2: self._serve}

        def channel(node: BrokerNode) -> LocalChannel:
            self.made += 1
            return LocalChannel(node.broker_id, serving)

        self.brokers = {2: BrokerNode(2, ())}
        metadata_cache = cast(MetadataCache, SimpleNamespace(brokers=self.brokers))
        self.channels = TransactionChannels(
            metadata_cache, cast(Peers, SimpleNamespace(channel=channel))
        )

    def _serve(self, _name: str, _version: int, _message: object) -> Promise[Message]:
        self.responses.append(Promise())
        return self.responses[-1]

    def move(self) -> None:
        """Register the broker again, at another place."""
        self.brokers[2] = BrokerNode(2, (), "another rack")


def test_responses_of_one_link_come_in_any_order() -> None:
    stage = Stage()
    first, second = stage.channels.send(2, CALL), stage.channels.send(2, OTHER)
    stage.responses[1].keep("second")
    assert (False, "second") == (first.is_kept, second.result())
    stage.responses[0].keep("first")
    assert ("first", 1) == (first.result(), stage.made)


def test_all_that_is_owed_fails_as_the_broker_moves() -> None:
    stage = Stage()
    owed = [stage.channels.send(2, CALL), stage.channels.send(2, OTHER)]
    stage.move()
    after = stage.channels.send(2, CALL)
    assert [True, True, False] == [isinstance(p.error, ConnectionLost) for p in (*owed, after)]
    # What comes by the old channel counts no more.
    stage.responses[0].keep("late")
    stage.responses[2].keep("new")
    assert ("new", 2) == (after.result(), stage.made)


def test_a_lost_broker_fails_all_that_is_owed_and_the_next_request_makes_a_link() -> None:
    stage = Stage()
    first, second = stage.channels.send(2, CALL), stage.channels.send(2, OTHER)
    stage.responses[1].fail(Unreachable("broker", 2, "it has stopped"))
    assert isinstance(first.error, ConnectionLost)
    assert isinstance(second.error, Unreachable)
    stage.channels.send(2, CALL)
    assert 2 == stage.made


@pytest.mark.parametrize(
    "error", [api_error(UNKNOWN_SERVER_ERROR), NoCommonVersion("x", ours=(4, 5), theirs=None)]
)
def test_an_error_of_one_request_is_of_that_alone(error: EngineError) -> None:
    stage = Stage()
    first, second = stage.channels.send(2, CALL), stage.channels.send(2, OTHER)
    stage.responses[1].fail(error)
    assert error is second.error
    stage.responses[0].keep("first")
    assert ("first", True) == (first.result(), stage.channels.send(2, CALL) is not None)
    assert 1 == stage.made


def test_who_closes_the_links_leaves_nobody_waiting() -> None:
    stage = Stage()
    owed = stage.channels.send(2, CALL)
    stage.channels.close()
    assert isinstance(owed.error, ConnectionLost)
    assert isinstance(stage.channels.send(2, CALL).error, Unreachable)
    assert 1 == stage.made


def test_a_broker_that_is_not_known_is_not_reached() -> None:
    stage = Stage()
    stage.brokers.clear()
    assert isinstance(stage.channels.send(2, CALL).error, Unreachable)


def test_a_partition_is_gone_only_if_the_broker_knows_topics_at_all() -> None:
    metadata_cache = MetadataCache(1, "cluster")
    channels = TransactionChannels(metadata_cache, cast(Peers, None))
    known, gone = TopicPartition("t", 0), TopicPartition("gone", 0)
    assert [-1, -1] == [channels.leader_of(partition) for partition in (known, gone)]
    row = PartitionMetadata(2, 0, (2,), 0, (2,))
    metadata_cache.update(None, [BrokerNode(2, ())], {known: row}, {})
    assert [2, -1] == [channels.leader_of(partition) for partition in (known, gone)]
    metadata_cache.update(
        None, [BrokerNode(2, ())], {TopicPartition("__transaction_state", 0): row}, {}
    )
    assert [2, None] == [channels.leader_of(partition) for partition in (known, gone)]
    metadata_cache.update(None, [], {}, {})
    assert -1 == channels.leader_of(known)
