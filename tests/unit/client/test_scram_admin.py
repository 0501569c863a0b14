"""Credentials of users as brokers describe them."""

from __future__ import annotations

from typing import Any

from engine.client.scram_admin import describe_credentials
from engine.security.scram import ScramMechanism
from engine.wire import messages
from tests.unit.client.fake_broker import FakeCluster


def test_a_mechanism_of_a_later_release_is_left_out() -> None:
    def describe(request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.DescribeUserScramCredentialsResponse
        infos = [response.CredentialInfo(mechanism=number, iterations=4096) for number in (1, 9)]
        result = response.DescribeUserScramCredentialsResult(user="app", credential_infos=infos)
        return response(results=[result])

    cluster = FakeCluster()
    cluster.handlers["DescribeUserScramCredentials"] = describe
    found = describe_credentials(cluster.client(), ["app"])
    assert {"app": {ScramMechanism.SCRAM_SHA_256: 4096}} == found
