"""Typed settings of topics and brokers, and their changes."""

from __future__ import annotations

import typing

import pytest

from engine.config.broker_config import BrokerConfig
from engine.config.change import check_broker_change, check_thread_counts
from engine.config.key import ConfigKey, ConfigType, broker_keys, topic_keys
from engine.config.listeners import ListenerAddress
from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig, check_topic_overrides
from engine.errors import ConfigError

HOUR_MS = 3_600_000
PLAIN = BrokerSettings({"broker.id": "1"})
TYPES = {
    ConfigType.BOOLEAN: bool,
    ConfigType.DOUBLE: float,
    ConfigType.LIST: tuple[str, ...],
    ConfigType.STRING: str,
    ConfigType.CLASS: str,
    ConfigType.PASSWORD: str,
}


def settings(**static: str) -> BrokerSettings:
    return BrokerSettings(
        {"broker.id": "1", **{name.replace("_", "."): text for name, text in static.items()}}
    )


@pytest.mark.parametrize(
    ("config", "keys"), [(TopicConfig, topic_keys()), (BrokerConfig, broker_keys())]
)
def test_fields_have_the_types_of_their_keys(
    config: type, keys: typing.Mapping[str, ConfigKey]
) -> None:
    for field, annotation in typing.get_type_hints(config).items():
        key = keys[field.replace("_", ".")]
        expected = TYPES.get(key.type, int)
        assert annotation == (expected if key.default is not None else expected | None), field


def test_a_topics_fields_are_in_the_order_of_its_keys() -> None:
    assert [name.replace(".", "_") for name in topic_keys()] == list(TopicConfig._fields)


def test_defaults_are_kafkas() -> None:
    topic = TopicConfig.of({}, PLAIN)
    assert (168 * HOUR_MS, -1, 1 << 30, 1048588) == (
        topic.retention_ms,
        topic.retention_bytes,
        topic.segment_bytes,
        topic.max_message_bytes,
    )
    assert (True, False) == (topic.is_deleted, topic.is_compacted)
    assert (1 << 63) - 1 == topic.flush_ms == topic.timestamp_before_ms_max
    broker = BrokerConfig.parse(PLAIN)
    assert (30000, 8, 50, ("/tmp/kafka-logs",)) == (
        broker.replica_lag_time_max_ms,
        broker.num_io_threads,
        broker.offsets_topic_num_partitions,
        broker.data_dirs,
    )
    assert 1 == broker.node_id


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({"log_retention_hours": "1"}, HOUR_MS),
        ({"log_retention_hours": "1", "log_retention_minutes": "2"}, 120_000),
        (
            {"log_retention_hours": "1", "log_retention_minutes": "2", "log_retention_ms": "3"},
            3,
        ),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_minutes": "-1"}, -1),
    ],
)
def test_milliseconds_beat_minutes_beat_hours(static: dict[str, str], retention_ms: int) -> None:
    """RET-3."""
    assert retention_ms == TopicConfig.of({}, settings(**static)).retention_ms


def test_the_nearest_source_counts() -> None:
    static = {"broker.id": "1", "log.segment.bytes": "100", "log.roll.hours": "2"}
    broker = BrokerSettings(static)
    assert 100 == TopicConfig.of({}, broker).segment_bytes
    assert 2 * HOUR_MS == TopicConfig.of({}, broker).segment_ms
    for_all = {"log.segment.bytes": "200", "log.roll.ms": "7"}
    changed = broker.with_dynamic({}, for_all)
    assert (200, 7) == (
        TopicConfig.of({}, changed).segment_bytes,
        TopicConfig.of({}, changed).segment_ms,
    )
    changed = broker.with_dynamic({"log.segment.bytes": "300"}, for_all)
    assert 300 == TopicConfig.of({}, changed).segment_bytes
    assert 400 == TopicConfig.of({"segment.bytes": "400"}, changed).segment_bytes
    assert 100 == TopicConfig.of({}, broker).segment_bytes


def test_the_older_bound_of_timestamps_counts_if_only_it_is_set() -> None:
    older = TopicConfig.of({"message.timestamp.difference.max.ms": "5"}, PLAIN)
    assert (5, 5) == (older.timestamp_before_ms_max, older.timestamp_after_ms_max)
    newer = older._replace(message_timestamp_after_max_ms=7)
    assert (5, 7) == (newer.timestamp_before_ms_max, newer.timestamp_after_ms_max)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.retention.ms", "5"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "shrink"),
        ("min.compaction.lag.ms", "9223372036854775807"),
        ("remote.storage.enable", "true"),
        ("segment.bytes", "13"),
    ],
)
def test_a_topic_refuses(name: str, text: str) -> None:
    overrides = {name: text, "max.compaction.lag.ms": "5"}
    with pytest.raises(ConfigError) as error:
        check_topic_overrides(overrides, PLAIN)
    assert name == error.value.key


def test_a_topic_accepts() -> None:
    check_topic_overrides(
        {"cleanup.policy": "compact, delete", "remote.storage.enable": "false"}, PLAIN
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broker.id", "-2"),
        ("broker.id", "1001"),
        ("log.dirs", " , "),
        ("log.retention.ms", "0"),
        ("log.cleaner.dedupe.buffer.size", "1048576"),
        ("replica.fetch.wait.max.ms", "30001"),
        ("queued.max.request.bytes", "1"),
        ("max.connections.per.ip", "0"),
        ("listeners", "PLAINTEXT://h"),
        ("listeners", "PLAINTEXT://h:65536"),
        ("listeners", "OTHER://h:1"),
        ("listeners", "PLAINTEXT://h:1,SSL://h:1"),
        ("listeners", "PLAINTEXT://h:1,plaintext://h:2"),
        ("listeners", ""),
        ("advertised.listeners", "SSL://h:1"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:1"),
        ("listener.security.protocol.map", "A:B"),
        ("inter.broker.listener.name", "SSL"),
        ("security.inter.broker.protocol", "SSL"),
        ("num.partitions", "many"),
    ],
)
def test_a_broker_refuses(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        BrokerConfig.parse(BrokerSettings({"broker.id": "1", name: text}))
    assert name == error.value.key


def test_ids_that_are_not_generated_must_be_given() -> None:
    BrokerConfig.parse(BrokerSettings({}))
    with pytest.raises(ConfigError, match=r"broker\.id"):
        BrokerConfig.parse(BrokerSettings({"broker.id.generation.enable": "false"}))


def test_listeners_are_bound_and_logged() -> None:
    config = BrokerConfig.parse(
        BrokerSettings(
            {
                "node.id": "3",
                "listeners": "INSIDE://1.2.3.4:9092, outside://[::1]:9092",
                "advertised.listeners": "INSIDE://a:1,OUTSIDE://b:2",
                "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:sasl_ssl",
                "inter.broker.listener.name": "inside",
                "log.dirs": "/a, /b",
            }
        )
    )
    assert ListenerAddress("OUTSIDE", "::1", 9092, "SASL_SSL") == config.bound_listeners[1]
    assert "OUTSIDE://[::1]:9092" == str(config.bound_listeners[1])
    assert ListenerAddress("INSIDE", "a", 1, "PLAINTEXT") == config.inter_broker_endpoint
    assert (3, ("/a", "/b")) == (config.broker_id, config.data_dirs)


def test_keys_of_no_table_are_reported_and_kept() -> None:
    found = BrokerSettings({"plugin.key": "x", "listener.name.a.ssl.keystore.type": "PEM"})
    assert ["plugin.key"] == found.unknown_names()


@pytest.mark.parametrize(
    ("name", "text", "per_broker"),
    [
        ("zookeeper.connect", "x:1", True),
        ("log.retention.hours", "1", True),
        ("ssl.keystore.location", "/x", True),
        ("ssl.key.password", "hush", True),
        ("listeners", "PLAINTEXT://:1", False),
        ("listener.name.a.ssl.keystore.type", "PEM", False),
        ("sasl.jaas.config", "hush", False),
        ("log.segment.bytes", "13", True),
        ("listener.name.a.max.connections", "x", True),
        ("max.connections", "0", False),
        ("listener.name.a.max.connections", "0", True),
        ("max.connection.creation.rate", "0", True),
    ],
)
def test_a_change_at_run_time_is_refused(name: str, text: str, per_broker: bool) -> None:
    with pytest.raises(ConfigError) as error:
        check_broker_change({name: text}, per_broker=per_broker)
    assert name.endswith(error.value.key)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "per_broker"),
    [
        ("listeners", "PLAINTEXT://:1", True),
        ("log.retention.ms", "1", False),
        ("listener.name.a.ssl.keystore.type", "PEM", True),
        ("listener.name.a.max.connections", "5", False),
        ("leader.replication.throttled.rate", "5", True),
        ("num.io.threads", "100", True),
        ("plugin.key", "x", False),
    ],
)
def test_a_change_at_run_time_is_accepted(name: str, text: str, per_broker: bool) -> None:
    check_broker_change({name: text}, per_broker=per_broker)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("num.io.threads", "17"),
        ("num.io.threads", "3"),
        ("num.replica.fetchers", "0"),
        ("num.network.threads", "7"),
        ("log.cleaner.threads", "3"),
    ],
)
def test_a_number_of_threads_does_not_move_far(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match="within half and double") as error:
        check_thread_counts(PLAIN, PLAIN.with_dynamic({}, {name: text}), ["PLAINTEXT"])
    assert error.value.key.endswith(name)


@pytest.mark.parametrize(("name", "text"), [("num.io.threads", "16"), ("num.io.threads", "4")])
def test_a_number_of_threads_moves_to_half_and_double(name: str, text: str) -> None:
    check_thread_counts(PLAIN, PLAIN.with_dynamic({name: text}, {}), ["PLAINTEXT"])


def test_taking_a_number_of_threads_away_may_move_it_too_far() -> None:
    with pytest.raises(ConfigError, match="within half and double of 4"):
        check_thread_counts(PLAIN.with_dynamic({"log.cleaner.threads": "4"}, {}), PLAIN, [])


def test_the_threads_of_a_listener_are_its_own_or_those_of_all() -> None:
    after = PLAIN.with_dynamic({"listener.name.inside.num.network.threads": "100"}, {})
    check_thread_counts(PLAIN, after, ["OUTSIDE"])
    with pytest.raises(ConfigError, match=r"listener\.name\.inside\.num\.network\.threads=100"):
        check_thread_counts(PLAIN, after, ["OUTSIDE", "INSIDE"])
    check_thread_counts(after, after, ["INSIDE"])


def test_threads_set_for_all_move_nothing_where_a_broker_has_its_own() -> None:
    own = {"num.io.threads": "8"}
    before = PLAIN.with_dynamic(own, {})
    check_thread_counts(before, PLAIN.with_dynamic(own, {"num.io.threads": "100"}), [])


@pytest.mark.parametrize("text", ["foo", "a:1,bar:x", "a:99999999999", "a:1,,b:2"])
def test_connections_of_an_address_are_a_whole_number(text: str) -> None:
    settings = BrokerSettings({"max.connections.per.ip.overrides": text})
    with pytest.raises(ConfigError, match="is not ADDRESS:COUNT"):
        BrokerConfig.parse(settings)


def test_connections_of_addresses_may_end_with_nothing() -> None:
    settings = BrokerSettings({"max.connections.per.ip.overrides": "a:1, ::1:2,,"})
    assert "a:1, ::1:2,," == BrokerConfig.parse(settings).max_connections_per_ip_overrides


@pytest.mark.parametrize(("threads", "size"), [("0", "134217728"), ("2", "2097153")])
def test_each_cleaner_has_more_than_a_mebibyte(threads: str, size: str) -> None:
    given = {"log.cleaner.threads": threads, "log.cleaner.dedupe.buffer.size": size}
    with pytest.raises(ConfigError):
        BrokerConfig.parse(BrokerSettings(given))


@pytest.mark.parametrize(
    ("protocols", "reason"),
    [
        ("classic,consumer", "The new 'consumer' rebalance protocol is only supported in KRaft"),
        ("consumer", "Disabling the 'classic' protocol is not supported."),
        ("share", "Disabling the 'classic' protocol is not supported."),
        ("", "Disabling the 'classic' protocol is not supported."),
        ("classic,share,unknown", None),
        ("classic,classic", None),
    ],
)
def test_a_broker_with_a_metadata_store_refuses_what_it_would_not_serve(
    protocols: str, reason: str | None
) -> None:
    given = settings(group_coordinator_rebalance_protocols=protocols)
    if reason is None:
        assert BrokerConfig.parse(given)
        return
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.parse(given)
    assert reason in str(refused.value)
