"""Single settings changed: what is written, what is refused and how that is said."""

from __future__ import annotations

import pytest

from engine.api.admission import Admission, NoQuotas, Session
from engine.config.settings import BrokerSettings
from engine.wire.structs import message_class
from tests.unit.api.asking import INSIDE, ask, exchange_of
from tests.unit.api.authorizers import DenyAll
from tests.unit.api.configuring import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    LOGGER,
    SET,
    STATIC,
    SUBTRACT,
    TOPIC,
    Stage,
)

OK = (0, None)
ABOUT_CLICKS = "Invalid config value for resource ConfigResource(type=TOPIC, name='clicks'): "


def test_a_topics_setting_is_written_and_announced() -> None:
    stage = Stage()
    assert OK == stage.operate(TOPIC, "clicks", (SET, "retention.ms", "1000"))
    assert OK == stage.operate(TOPIC, "clicks", (SET, "segment.ms", "5"))
    assert {"retention.ms": "1000", "segment.ms": "5"} == stage.stored("topics/clicks")
    assert ["topics/clicks", "topics/clicks"] == stage.changes()


def test_a_setting_is_unset_and_one_that_is_not_set_may_be() -> None:
    stage = Stage()
    stage.put("topics/clicks", {"retention.ms": "1000"})
    assert OK == stage.operate(
        TOPIC, "clicks", (DELETE, "retention.ms", None), (DELETE, "segment.ms", None)
    )
    assert {} == stage.stored("topics/clicks")


@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "delete", "delete"),
        (SUBTRACT, "delete", ""),
        (SUBTRACT, "compact", "delete"),
    ],
)
def test_a_list_that_is_not_set_starts_from_its_default(
    operation: int, value: str, expected: str
) -> None:
    stage = Stage()
    assert OK == stage.operate(TOPIC, "clicks", (operation, "cleanup.policy", value))
    assert {"cleanup.policy": expected} == stage.stored("topics/clicks")


def test_a_list_that_is_set_goes_on() -> None:
    stage = Stage()
    key = "leader.replication.throttled.replicas"
    stage.put("topics/clicks", {key: "0:1,1:1"})
    assert OK == stage.operate(TOPIC, "clicks", (APPEND, key, "2:1,0:1"))
    assert {key: "0:1,1:1,2:1"} == stage.stored("topics/clicks")
    assert OK == stage.operate(TOPIC, "clicks", (SUBTRACT, key, "1:1,9:9"))
    assert {key: "0:1,2:1"} == stage.stored("topics/clicks")


@pytest.mark.parametrize(
    ("before", "operation", "value", "expected"),
    [
        ("0:1", APPEND, "2:1,", "0:1,2:1"),
        ("0:1", APPEND, "2:1,,", "0:1,2:1"),
        ("0:1", APPEND, ",", "0:1"),
        ("0:1", APPEND, "", "0:1,"),
        ("0:1", APPEND, ",2:1", "0:1,,2:1"),
        ("0:1,", APPEND, "2:1", "0:1,2:1"),
        (",0:1", APPEND, "", ",0:1"),
        ("", APPEND, ",", ""),
        ("", APPEND, "2:1", "2:1"),
        (",0:1", SUBTRACT, ",,", ",0:1"),
        (",0:1", SUBTRACT, "", "0:1"),
        ("0:1,", SUBTRACT, "0:1", ""),
    ],
)
def test_empty_elements_at_the_end_of_a_list_are_none(
    before: str, operation: int, value: str, expected: str
) -> None:
    stage = Stage()
    key = "leader.replication.throttled.replicas"
    stage.put("topics/clicks", {key: before})
    assert OK == stage.operate(TOPIC, "clicks", (operation, key, value))
    assert {key: expected} == stage.stored("topics/clicks")


@pytest.mark.parametrize(
    ("operation", "key", "value", "message"),
    [
        (SET, "no.such.key", "1", "Unknown topic config name: no.such.key"),
        (
            APPEND,
            "retention.ms",
            "1",
            "Config value append is not allowed for config key: retention.ms",
        ),
        (
            SUBTRACT,
            "retention.ms",
            "1",
            "Config value subtract is not allowed for config key: retention.ms",
        ),
        (
            SET,
            "retention.ms",
            "soon",
            ABOUT_CLICKS + "Invalid value soon for configuration retention.ms: "
            "Not a number of type LONG",
        ),
        (
            SET,
            "min.cleanable.dirty.ratio",
            "7",
            ABOUT_CLICKS + "Invalid value 7.0 for configuration min.cleanable.dirty.ratio: "
            "Value must be no more than 1",
        ),
        (
            SET,
            "min.cleanable.dirty.ratio",
            "-1d",
            ABOUT_CLICKS + "Invalid value -1.0 for configuration min.cleanable.dirty.ratio: "
            "Value must be at least 0",
        ),
        (
            SET,
            "segment.bytes",
            "13",
            ABOUT_CLICKS + "Invalid value 13 for configuration segment.bytes: "
            "Value must be at least 14",
        ),
        (
            SET,
            "compression.gzip.level",
            "77",
            ABOUT_CLICKS + "Invalid value 77 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            SET,
            "message.format.version",
            "x",
            ABOUT_CLICKS + "Invalid value x for configuration message.format.version: "
            "Version x is not a valid version",
        ),
        (
            SET,
            "cleanup.policy",
            "shred",
            ABOUT_CLICKS + "Invalid value shred for configuration cleanup.policy: "
            "String must be one of: compact, delete",
        ),
        (
            SET,
            "preallocate",
            "perhaps",
            ABOUT_CLICKS + "Invalid value perhaps for configuration preallocate: "
            "Expected value to be either true or false",
        ),
    ],
)
def test_what_a_topic_does_not_take_is_an_invalid_config(
    operation: int, key: str, value: str, message: str
) -> None:
    stage = Stage()
    assert (40, message) == stage.operate(TOPIC, "clicks", (operation, key, value))
    assert not stage.is_stored("topics/clicks")


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "", 42),
        (TOPIC, "ghost", 3),
        (TOPIC, "../brokers/1", 40),
        (BROKER, "2", 42),
        (BROKER, "one", 42),
        (BROKER, " 1", 42),
        (LOGGER, "2", 42),
        (LOGGER, "", 42),
        (CLIENT_METRICS, "m", 42),
        (0, "x", 42),
        (32, "group", 42),
    ],
)
def test_resources_that_are_not_here_are_refused(kind: int, name: str, code: int) -> None:
    stage = Stage()
    found, message = stage.operate(kind, name, (SET, "retention.ms", "1"))
    assert code == found
    assert message
    assert [] == stage.changes()


def test_another_brokers_id_is_named() -> None:
    message = "Unexpected broker id, expected 1, but received 2"
    assert (42, message) == Stage().operate(BROKER, "2", (SET, "num.io.threads", "9"))


@pytest.mark.parametrize(("name", "entity"), [("1", "brokers/1"), ("", "brokers/<default>")])
def test_a_brokers_setting_is_written_for_it_or_for_all(name: str, entity: str) -> None:
    stage = Stage()
    assert OK == stage.operate(BROKER, name, (SET, "log.cleaner.threads", "2"))
    assert {"log.cleaner.threads": "2"} == stage.stored(entity)
    assert [entity] == stage.changes()
    assert OK == stage.operate(BROKER, name, (DELETE, "log.cleaner.threads", None))
    assert {} == stage.stored(entity)


@pytest.mark.parametrize(
    ("name", "key", "value", "part"),
    [
        ("1", "broker.id", "7", "Cannot update these configs dynamically: Set(broker.id)"),
        (
            "1",
            "num.io.threads",
            "many",
            "Invalid value many for configuration num.io.threads: Not a number of type INT",
        ),
        ("1", "ssl.keystore.location", "/k", "listener prefix: HashSet(ssl.keystore.location)"),
        ("", "advertised.listeners", "PLAINTEXT://x:1", "broker id must be specified: Set("),
        ("1", "log.cleaner.dedupe.buffer.size", "1048576", "at least 1MB per cleaner"),
        ("1", "ssl.key.password", "secret", "only per-listener"),
        ("", "listener.name.inside.ssl.key.password", "secret", "at default cluster level"),
        ("1", "delegation.token.secret.key", "secret", "Cannot update"),
        ("", "leader.replication.throttled.rate", "-1", "Value must be at least 0"),
    ],
)
def test_what_a_broker_does_not_take_is_an_invalid_request(
    name: str, key: str, value: str, part: str
) -> None:
    stage = Stage()
    code, message = stage.operate(BROKER, name, (SET, key, value))
    assert 42 == code
    assert part in message
    assert "secret" not in message.replace(key, "")
    assert [] == stage.changes()


def _refused(reason: str) -> str:
    """Return Kafka's message for a change that it refuses as it applies it."""
    return (
        f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} "
        "for configuration Invalid dynamic configuration"
    )


_OPEN_LISTENER = _refused(
    "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart "
    "broker or create a new listener for update"
)


@pytest.mark.parametrize(
    ("name", "key", "value", "expected"),
    [
        (
            "1",
            "num.io.threads",
            "100",
            _refused(
                "Dynamic thread count update validation failed for num.io.threads=100, value "
                "should not be greater than double the current value 8"
            ),
        ),
        (
            "",
            "background.threads",
            "1",
            _refused(
                "Dynamic thread count update validation failed "
                "for background.threads=1, value should be at least half the current value 10"
            ),
        ),
        (
            "1",
            "num.replica.fetchers",
            "-1",
            _refused(
                "Dynamic thread count update validation "
                "failed for num.replica.fetchers=-1, value should be at least 1"
            ),
        ),
        (
            "1",
            "log.cleaner.threads",
            "7",
            _refused(
                "Log cleaner threads cannot be increased to more than double the current value 1"
            ),
        ),
        ("1", "log.cleaner.threads", "0", "/ by zero"),
        ("1", "max.connections", "0", _refused("Invalid max.connections 0")),
        (
            "1",
            "listener.name.plaintext.max.connections",
            "0",
            _refused("Invalid max.connections 0"),
        ),
        (
            "1",
            "listener.name.plaintext.max.connections",
            "x",
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            "1",
            "listener.name.plaintext.num.network.threads",
            "50",
            _refused(
                "Dynamic thread count update validation failed for num.network.threads=50, value "
                "should not be greater than double the current value 3"
            ),
        ),
        ("1", "listener.name.plaintext.ssl.protocol", "x", _OPEN_LISTENER),
        ("1", "listener.name.plaintext.plug.in", "x", _OPEN_LISTENER),
        (
            "1",
            "listener.name.other.connections.max.reauth.ms",
            "x",
            _refused(
                "Invalid value x for "
                "configuration connections.max.reauth.ms: Not a number of type LONG"
            ),
        ),
        (
            "1",
            "listener.name.other.sasl.login.class",
            "abc",
            _refused(
                "Invalid value abc for "
                "configuration sasl.login.class: Class abc could not be found."
            ),
        ),
        (
            "1",
            "principal.builder.class",
            " x.Y ",
            "Invalid value  x.Y  for configuration principal.builder.class: "
            "Class  x.Y  could not be found.",
        ),
        (
            "1",
            "metric.reporters",
            "x.Y",
            _refused(
                "Validation of dynamic config update of "
                "Set(metric.reporters) failed with class class kafka.server.DynamicMetricsReporters"
            ),
        ),
        (
            "1",
            "log.retention.ms",
            "0",
            "requirement failed: log.retention.ms must be unlimited "
            "(-1) or, greater than or equal to 1",
        ),
        (
            "1",
            "log.roll.ms",
            "-1",
            "requirement failed: log.roll.ms must be greater than or equal to 1",
        ),
        (
            "",
            "log.roll.jitter.ms",
            "-1",
            "requirement failed: log.roll.jitter.ms must be greater than or equal to 0",
        ),
        (
            "1",
            "log.local.retention.ms",
            "-1",
            _refused(
                "Invalid value -1 for configuration "
                "log.local.retention.ms: Value must not be -1 as log.retention.ms value is set as "
                "604800000."
            ),
        ),
        (
            "1",
            "max.connections.per.ip",
            "0",
            "requirement failed: max.connections.per.ip can be "
            "set to zero only if max.connections.per.ip.overrides property is set.",
        ),
        (
            "1",
            "max.connections.per.ip.overrides",
            "abc",
            "Error parsing configuration property "
            "'max.connections.per.ip.overrides': begin 0, end -1, length 3",
        ),
        ("1", "max.connections.per.ip.overrides", "a:b", 'For input string: "b"'),
        (
            "1",
            "listener.security.protocol.map",
            "abc",
            "Error parsing configuration property "
            "'listener.security.protocol.map': begin 0, end -1, length 3",
        ),
        (
            "1",
            "listener.security.protocol.map",
            "PLAINTEXT:FOO",
            "Invalid security protocol `FOO` defined in listener.security.protocol.map",
        ),
        (
            "1",
            "listeners",
            "FOO://:99",
            "Error creating broker listeners from 'FOO://:99': "
            "No security protocol defined for listener FOO",
        ),
        (
            "1",
            "listeners",
            " a,b ",
            "Error creating broker listeners from 'a,b': Unable to parse a to a broker endpoint",
        ),
        (
            "1",
            "advertised.listeners",
            "",
            "requirement failed: There must be at least one broker advertised listener.",
        ),
        (
            "1",
            "advertised.listeners",
            "PLAINTEXT://0.0.0.0:9",
            "requirement failed: "
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
            "Use a routable IP address.",
        ),
        (
            "1",
            "compression.type",
            " 7 ",
            "Invalid value 7 for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "1",
            "listener.security.protocol.map",
            "PLAINTEXT:SASL_PLAINTEXT",
            _refused(
                "Security protocol cannot be updated for existing listener ListenerName(PLAINTEXT)"
            ),
        ),
    ],
)
def test_the_reason_of_a_refusal_is_that_of_a_real_broker(
    name: str, key: str, value: str, expected: str
) -> None:
    stage = Stage()
    assert (42, expected) == stage.operate(BROKER, name, (SET, key, value))
    assert [] == stage.changes()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "remote.storage.enable",
            "true",
            "Invalid config value for resource ConfigResource("
            "type=TOPIC, name='clicks'): Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
        (
            "remote.log.copy.disable",
            "true",
            "It is invalid to set `remote.log.delete.on.disable` "
            "or `remote.log.copy.disable` under Zookeeper's mode.",
        ),
        (
            "preallocate",
            " 7 ",
            "Invalid config value for resource ConfigResource(type=TOPIC, "
            "name='clicks'): Invalid value  7  for configuration preallocate: Expected value to be "
            "either true or false",
        ),
    ],
)
def test_the_reason_of_a_topics_refusal_is_that_of_a_real_broker(
    key: str, value: str, expected: str
) -> None:
    assert (40, expected) == Stage().operate(TOPIC, "clicks", (SET, key, value))


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize("key", ["plugin.ssl.key.password", "my.sasl.jaas.config"])
def test_a_password_is_valid_and_not_kept_without_a_secret(name: str, key: str) -> None:
    stage = Stage()
    assert OK == stage.operate(BROKER, name, (SET, key, "hush"), validate_only=True)
    code, message = stage.operate(BROKER, name, (SET, key, "hush"))
    assert 40 == code
    reason = (
        "encoder secret not configured" if name else "config can be defined only at broker level"
    )
    resource = f"ConfigResource(type=BROKER, name='{name}')"
    assert f"Invalid config value for resource {resource}: Password {reason}" == message
    code, _ = stage.replace(BROKER, name, {key: "hush"})
    assert 40 == code
    assert [] == stage.changes()
    assert not stage.is_stored(f"brokers/{name or '<default>'}")


def test_a_listeners_password_is_valid_for_its_broker() -> None:
    stage = Stage()
    for key in ("listener.name.a.ssl.key.password", "sasl.jaas.config"):
        assert OK == stage.operate(BROKER, "1", (SET, key, "hush"), validate_only=True)
        assert 40 == stage.operate(BROKER, "1", (SET, key, "hush"))[0]


def test_a_secret_that_is_no_password_of_a_broker_is_kept_as_it_is() -> None:
    stage = Stage()
    key = "listener.name.x.delegation.token.secret.key"
    assert OK == stage.operate(BROKER, "1", (SET, key, "hush"))
    assert {key: "hush"} == stage.stored("brokers/1")


def test_a_plug_ins_key_is_stored_as_it_is() -> None:
    stage = Stage()
    assert OK == stage.operate(BROKER, "1", (SET, "some.plugin.key", "x"))
    assert {"some.plugin.key": "x"} == stage.stored("brokers/1")


def test_what_no_broker_goes_by_is_dropped_and_encrypted_passwords_stay() -> None:
    stage = Stage()
    password = {"listener.name.inside.ssl.key.password": "encryptor:salt"}
    stage.put("brokers/1", {"broker.id": "7", "num.io.threads": "8", **password})
    assert OK == stage.operate(BROKER, "1", (SET, "log.cleaner.threads", "2"))
    expected = {"num.io.threads": "8", "log.cleaner.threads": "2", **password}
    assert expected == stage.stored("brokers/1")


def test_threads_of_all_may_be_set_where_a_broker_has_its_own() -> None:
    stage = Stage()
    assert OK == stage.operate(BROKER, "1", (SET, "num.io.threads", "8"))
    stage.settings = stage.settings.with_dynamic({"num.io.threads": "8"}, {})
    assert OK == stage.operate(BROKER, "", (SET, "num.io.threads", "100"))


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"log.local.retention.ms": "604800000"}, None),
        ({"log.local.retention.ms": "604800001"}, "Value must not be more than log.retention.ms"),
        ({"log.local.retention.ms": "-2"}, None),
        ({"log.local.retention.ms": "-1"}, "Value must not be -1 as log.retention.ms"),
        ({"log.local.retention.ms": "-1", "log.retention.ms": "-1"}, None),
        ({"log.local.retention.ms": "5", "log.retention.ms": "4"}, "must not be more than"),
        ({"log.local.retention.bytes": "5"}, None),
        ({"log.local.retention.bytes": "-1"}, None),
        ({"log.local.retention.bytes": "5", "log.retention.bytes": "5"}, None),
        ({"log.local.retention.bytes": "5", "log.retention.bytes": "4"}, "must not be more than"),
        ({"log.local.retention.bytes": "-1", "log.retention.bytes": "4"}, "must not be -1"),
    ],
)
def test_no_more_of_a_log_is_kept_on_the_disk_than_in_all(
    name: str, settings: dict[str, str], refused: str | None
) -> None:
    changes = [(SET, key, value) for key, value in settings.items()]
    code, message = Stage().operate(BROKER, name, *changes)
    assert (0 if refused is None else 42) == code
    assert (refused or "") in (message or "")


def test_less_of_a_log_is_not_kept_in_all_than_on_the_disk() -> None:
    stage = Stage()
    assert OK == stage.operate(BROKER, "1", (SET, "log.local.retention.bytes", "5"))
    stage.settings = stage.settings.with_dynamic({"log.local.retention.bytes": "5"}, {})
    assert 42 == stage.operate(BROKER, "1", (SET, "log.retention.bytes", "4"))[0]
    assert OK == stage.operate(BROKER, "1", (SET, "log.retention.bytes", "5"))


def test_a_brokers_file_may_say_that_more_is_kept_on_the_disk_than_in_all() -> None:
    stage = Stage()
    retention = {"log.local.retention.ms": "5", "log.retention.ms": "4"}
    stage.settings = BrokerSettings(STATIC | retention)
    assert OK == stage.operate(BROKER, "1", (SET, "log.cleaner.threads", "2"))


def test_a_listener_keeps_its_security_protocol() -> None:
    stage = Stage()
    key = "listener.security.protocol.map"
    code, message = stage.operate(BROKER, "1", (SET, key, "PLAINTEXT:SASL_PLAINTEXT"))
    assert 42 == code
    assert "Security protocol cannot be updated for existing listener" in str(message)
    assert OK == stage.operate(BROKER, "1", (SET, key, "plaintext:plaintext,NEW:SSL"))


def test_validation_alone_writes_nothing() -> None:
    stage = Stage()
    assert OK == stage.operate(TOPIC, "clicks", (SET, "retention.ms", "1000"), validate_only=True)
    code, _ = stage.operate(TOPIC, "clicks", (SET, "retention.ms", "x"), validate_only=True)
    assert 40 == code
    stage.operate(LOGGER, "1", (SET, "kafka.a", "DEBUG"), validate_only=True)
    assert {"root": "INFO"} == stage.levels.own
    assert not stage.is_stored("topics/clicks")
    assert [] == stage.changes()


@pytest.mark.parametrize(
    "operations",
    [
        ((SET, "retention.ms", "1"), (DELETE, "retention.ms", None)),
        ((SET, "retention.ms", None),),
        ((APPEND, "cleanup.policy", None),),
    ],
)
def test_operations_that_make_no_sense_are_invalid_requests(
    operations: tuple[tuple[int, str, str | None], ...],
) -> None:
    code, message = Stage().operate(TOPIC, "clicks", *operations)
    assert 42 == code
    assert message


def test_a_resource_named_twice_is_refused_both_times() -> None:
    stage = Stage()
    request = message_class("IncrementalAlterConfigsRequest")

    def resource(name: str) -> object:
        config = request.AlterableConfig(config_operation=SET, name="retention.ms", value="1")
        return request.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=[config]
        )

    resources = [resource("clicks"), resource("orders"), resource("clicks")]
    reply = ask(stage.incremental, "IncrementalAlterConfigs", 0, resources=resources)
    assert [("clicks", 42), ("orders", 0), ("clicks", 42)] == [
        (each.resource_name, each.error_code) for each in reply.responses
    ]
    assert ["topics/orders"] == stage.changes()


def test_nothing_is_changed_without_a_controller() -> None:
    stage = Stage(has_controller=False)
    code, _ = stage.operate(TOPIC, "clicks", (SET, "retention.ms", "1"))
    assert 41 == code
    assert not stage.is_stored("topics/clicks")


def test_a_session_that_is_over_notifies_nothing_more() -> None:
    stage = Stage()
    stage.do(stage.client.close())
    assert (-1, None) == stage.operate(TOPIC, "clicks", (SET, "retention.ms", "1"))


def test_loggers_change_at_once() -> None:
    stage = Stage()
    assert OK == stage.operate(LOGGER, "1", (SET, "kafka.a", "TRACE"), (SET, "root", "WARN"))
    assert {"kafka.a": "TRACE", "root": "WARN"} == stage.levels.own
    assert OK == stage.operate(LOGGER, "1", (DELETE, "kafka.a", None))
    assert {"root": "WARN"} == stage.levels.own
    assert [] == stage.changes()


@pytest.mark.parametrize(
    ("operation", "key", "value", "code", "message"),
    [
        (SET, "no.such.Logger", "INFO", 40, "Logger no.such.Logger does not exist!"),
        (DELETE, "no.such.Logger", None, 40, "Logger no.such.Logger does not exist!"),
        (
            SET,
            "kafka.a",
            "LOUD",
            40,
            "Cannot set the log level of kafka.a to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (DELETE, "root", None, 42, "the root logger must have a level"),
        (APPEND, "kafka.a", "INFO", 42, "loggers have no operation APPEND"),
        (9, "kafka.a", "INFO", -1, None),
    ],
)
def test_changes_of_loggers_are_all_made_or_none(
    operation: int, key: str, value: str | None, code: int, message: str | None
) -> None:
    stage = Stage()
    good = (SET, "root" if key != "root" else "kafka.a", "DEBUG")
    assert (code, message) == stage.operate(LOGGER, "1", good, (operation, key, value))
    assert {"root": "INFO"} == stage.levels.own


@pytest.mark.parametrize(
    ("operation", "key"), [(APPEND, "no.such.key"), (SUBTRACT, ""), (4, "retention.ms")]
)
def test_what_kafka_fails_at_has_no_code_of_its_own(operation: int, key: str) -> None:
    for topic in ("clicks", "gone"):
        assert (-1, None) == Stage().operate(TOPIC, topic, (operation, key, "1"))


@pytest.mark.parametrize(
    ("name", "code"),
    [("a\x01", 40), ("..", 40), ("a//b", 40), ("a\ufffd", 40), ("a/b", 3), ("x" * 5000, 3)],
)
def test_a_topic_that_no_path_can_have_is_a_wrong_setting(name: str, code: int) -> None:
    assert code == Stage().operate(TOPIC, name, (SET, "retention.ms", "1"))[0]


@pytest.mark.parametrize("value", ["burn", "delete,burn", "delete , burn,ash"])
def test_the_element_of_a_list_is_named_that_is_not_allowed(value: str) -> None:
    code, message = Stage().operate(TOPIC, "clicks", (SET, "cleanup.policy", value))
    assert 40 == code
    assert "Invalid value burn for configuration cleanup.policy" in message


def test_settings_of_a_topic_that_contradict_each_other_are_reported_as_kafka_does() -> None:
    lags = {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}
    changes = [(SET, key, value) for key, value in lags.items()]
    message = "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)"
    assert (40, message) == Stage().operate(TOPIC, "clicks", *changes)
    assert (40, message) == Stage().replace(TOPIC, "clicks", lags)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (TOPIC, "clicks", (29, None)),
        (BROKER, "1", (31, None)),
        (LOGGER, "1", (31, None)),
    ],
)
def test_a_client_that_may_not_gets_no_words(
    kind: int, name: str, expected: tuple[int, str | None]
) -> None:
    request = message_class("IncrementalAlterConfigsRequest")
    resource = request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
    session = Session("1.2.3.4:5", Admission(DenyAll(), NoQuotas()), INSIDE)
    exchange = exchange_of("IncrementalAlterConfigs", 1)._replace(session=session)
    promise = Stage().incremental.handle(request(resources=[resource]), exchange)
    (answer,) = promise.result().responses
    assert expected == (answer.error_code, answer.error_message)
