"""Options of kafka-configs. The expectations were printed by the tools of 3.9.1 and 4.3.0."""

from __future__ import annotations

import socket

import pytest

from kctl.compat.configs_changes import parse_added_configs
from kctl.compat.configs_entities import ConfigsRefused
from kctl.compat.configs_tool import check_options, options
from kctl.compat.configs_views import request_client_metrics_names
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import parse_options
from kctl.compat.releases import Release
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import client_of


def check(words: str) -> None:
    release = Release.V4_3
    check_options(parse_options(options(release), ["--bootstrap-server", "b:1", *words.split()]))


@pytest.fixture
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(host: str, *_: object, **__: object) -> list[object]:
        if host not in ("client.example", "1.2.3"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.9", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize("address", ["client.example", "10.0.0.9", "::1", "1.2.3"])
@pytest.mark.usefixtures("_names")
def test_quotas_are_of_an_address_or_of_a_host_that_has_one(address: str) -> None:
    check(f"--alter --ip {address} --add-config connection_creation_rate=5")


@pytest.mark.parametrize("address", ["nowhere.example", "1.2.3.256"])
@pytest.mark.usefixtures("_names")
def test_a_host_without_an_address_has_no_quotas(address: str) -> None:
    with pytest.raises(ConfigsRefused, match="must be a valid IP or resolvable host, but it is"):
        check(f"--alter --ip {address} --add-config connection_creation_rate=5")


def test_the_later_tool_names_the_form_of_values_with_commas_too() -> None:
    with pytest.raises(ConfigsRefused, match=r'"key=val"\.$'):
        parse_added_configs("a=[b,c", is_four=False)
    with pytest.raises(ConfigsRefused, match=r'"key=val" or  "key=\[val1,val2\]" to group'):
        parse_added_configs("a=[b,c", is_four=True)


@pytest.mark.parametrize(
    ("is_four", "name"), [(False, "LIST_CLIENT_METRICS_RESOURCES"), (True, "LIST_CONFIG_RESOURCES")]
)
def test_brokers_that_list_no_subscriptions_lack_the_request_that_the_tool_sends(
    is_four: bool, name: str
) -> None:
    client = client_of(MemoryCluster(is_one_process=True))
    with pytest.raises(ToolFailure, match=f"The node does not support {name}$"):
        request_client_metrics_names(client, is_four=is_four)
