"""A scripted broker: answers of our own making, by API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.client.blocking import KafkaClient
from engine.client.settings import Address, ClientSettings
from engine.wire.codec import message_codec
from engine.wire.headers import api, read_request_header, response_header_bytes
from engine.wire.structs import message_class
from tests.client_session import FakeClock, FixedEntropy, FramedStream, FramedStreams

Handler = Callable[[Any, int, "tuple[str, int]"], Any]

TOPIC_ID = bytes(range(16))


class FakeCluster(FramedStreams):
    """Brokers at 127.0.0.1:9000 + id; `handlers` make the answers to one API each.

    A handler takes the request, its version and the address asked; None is no answer.
    """

    def __init__(self, versions: dict[str, tuple[int, int]] | None = None) -> None:
        super().__init__(FakeClock())
        self.versions = versions or {}
        self.handlers: dict[str, Handler] = {
            "ApiVersions": self.api_versions,
            "Metadata": self.metadata,
        }
        self.brokers = [1, 2]
        self.controller = 1
        self.leaders = {("t", 0): 1, ("t", 1): 2}
        self.requested: list[tuple[str, int]] = []

    def client(self, *bootstrap: int, **settings: Any) -> KafkaClient:
        return KafkaClient(
            [Address("127.0.0.1", 9000 + number) for number in bootstrap or (1,)],
            streams=self,
            clock=self.clock,
            entropy=FixedEntropy(),
            settings=ClientSettings(**settings),
        )

    def requested_apis(self) -> list[str]:
        return [name for name, _ in self.requested if name != "ApiVersions"]

    def answers(self, stream: FramedStream, request: bytes) -> Sequence[bytes]:
        header = read_request_header(request)
        name, version = api(header.api_key).name, header.api_version
        self.requested.append((name, stream.address[1] - 9000))
        body = message_codec(f"{name}Request", version).decode(request[header.body_position :])
        answer = self.handlers[name](body, version, stream.address)
        if answer is None:
            return ()
        if name == "ApiVersions" and answer.error_code == 35:
            version = 0
        head = response_header_bytes(header.api_key, version, header.correlation_id)
        return (head + message_codec(f"{name}Response", version).encode(answer),)

    def api_versions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ApiVersionsResponse")
        names = ("Produce", "Fetch", "ListOffsets", "Metadata", "SaslHandshake", "ApiVersions")
        names += ("CreateTopics", "SaslAuthenticate", "FindCoordinator", "DescribeGroups")
        names += ("InitProducerId",)
        names += tuple(name for name in self.handlers if name not in names)
        rows = []
        for name in names:
            known = api(name)
            low, high = self.versions.get(name, known.stable)
            rows.append(response.ApiVersion(api_key=known.key, min_version=low, max_version=high))
        return response(api_keys=rows)

    def metadata(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("MetadataResponse")
        topics: dict[str, Any] = {}
        for (name, number), leader in self.leaders.items():
            topic = topics.setdefault(
                name, response.MetadataResponseTopic(name=name, topic_id=self.topic_id(version))
            )
            topic.partitions.append(
                response.MetadataResponsePartition(
                    partition_index=number,
                    leader_id=leader,
                    replica_nodes=[1, 2],
                    isr_nodes=[1, 2],
                )
            )
        if body.topics is not None:
            wanted = [row.name for row in body.topics]
            topics = {
                name: topics.get(name) or response.MetadataResponseTopic(name=name, error_code=3)
                for name in wanted
            }
        return response(
            brokers=[
                response.MetadataResponseBroker(node_id=n, host="127.0.0.1", port=9000 + n)
                for n in self.brokers
            ],
            cluster_id="c",
            controller_id=self.controller,
            topics=list(topics.values()),
        )

    def topic_id(self, version: int) -> bytes:
        return TOPIC_ID if version >= 10 else bytes(16)
