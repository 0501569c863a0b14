"""The table of APIs: rows by area, made of named dependencies."""

from __future__ import annotations

from typing import get_type_hints

from engine.api.admission import allow_all
from engine.api.dispatch import DispatchTable
from engine.broker import api_table
from engine.broker.api_table import ApiDeps, serve_apis
from engine.broker.broker import Broker
from tests.unit.broker.memory_broker import MemoryBroker

AREAS = (
    api_table.authentication_rows,
    api_table.data_rows,
    api_table.transaction_rows,
    api_table.cluster_rows,
    api_table.topic_rows,
    api_table.group_rows,
    api_table.leader_rows,
    api_table.config_rows,
    api_table.acl_rows,
    api_table.quota_rows,
    api_table.credential_rows,
    api_table.token_rows,
    api_table.inter_broker_rows,
)


def test_every_area_is_served_and_no_api_is_in_two() -> None:
    deps = MemoryBroker().start().broker._api_deps()
    names = [row.name for area in AREAS for row in area(deps)]
    assert len(set(names)) == len(names)
    table = DispatchTable(allow_all())
    serve_apis(table, deps)
    assert {"ApiVersions", *names} == {row.name for row in table.rows()}


def test_only_rows_between_brokers_are_marked_as_such() -> None:
    deps = MemoryBroker().start().broker._api_deps()
    table = DispatchTable(allow_all())
    serve_apis(table, deps)
    marked = {row.name for row in table.rows() if row.is_inter_broker}
    assert {row.name for row in api_table.inter_broker_rows(deps)} == marked


def test_no_row_is_given_the_broker() -> None:
    hints = get_type_hints(ApiDeps)
    assert Broker not in hints.values()
    assert not any(isinstance(value, Broker) for value in MemoryBroker().start().broker._api_deps())
