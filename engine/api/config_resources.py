"""Resources with settings: their names in requests, and the errors for wrong ones.

| type | name |
|---|---|
| 2 topic | its name |
| 4 broker | its id; empty for the defaults of all brokers |
| 8 broker logger | the broker's id |
| 16 client metrics | only without ZooKeeper |

Source: ConfigResource, ConfigAdminManager, ZkAdminManager of 3.9.1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from engine.admin.config_errors import InvalidRequest
from engine.admin.config_message import NO_TIERED_STORAGE, config_message
from engine.api.admission import (
    CLUSTER_NAME,
    AclOperation,
    AclResource,
    NotAuthorized,
    Session,
)
from engine.config.change import ReconfigurationRefused
from engine.config.key import ConfigKey, ConfigType
from engine.config.settings import find_key
from engine.config.value import format_value
from engine.errors import ApiError, ConfigError, EngineError
from engine.kafka_errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_SERVER_ERROR,
)
from engine.wire import messages

_INT_MAX = (1 << 31) - 1
_NUMBERS = frozenset((ConfigType.SHORT, ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE))


#: A resource of AlterConfigs or IncrementalAlterConfigs.
AlteredResource: TypeAlias = (
    "messages.AlterConfigsRequest.AlterConfigsResource"
    " | messages.IncrementalAlterConfigsRequest.AlterConfigsResource"
)
#: A resource of AlterConfigs, IncrementalAlterConfigs or DescribeConfigs.
Resource: TypeAlias = "AlteredResource | messages.DescribeConfigsRequest.DescribeConfigsResource"


class ResourceType(IntEnum):
    """Resources with settings, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


RESOURCE_TYPES = frozenset(ResourceType)


def require_allowed(session: Session, resource: Resource, operation: AclOperation) -> None:
    """Raise NotAuthorized unless a client may perform an operation on a resource's settings.

    The resource of the check is the topic, or the cluster for brokers and loggers.
    """
    kind, name = AclResource.CLUSTER, CLUSTER_NAME
    if resource.resource_type == ResourceType.TOPIC:
        kind, name = AclResource.TOPIC, resource.resource_name
    if not session.may(operation, kind, name):
        raise NotAuthorized(kind)


class ResourceResult(NamedTuple):
    """The error code and message for one resource."""

    code: int = 0
    message: str | None = None


def result_of_error(error: EngineError, resource_type: int, name: str) -> ResourceResult:
    """Return the error code and message of a config resource whose request failed with `error`.

    Values that are invalid for a topic are INVALID_CONFIG, for a broker INVALID_REQUEST. An error
    without a code has no message in the response, as in Kafka.
    """
    if isinstance(error, ApiError):
        message = None if error.code == UNKNOWN_SERVER_ERROR else error.detail
        return ResourceResult(error.code, message)
    if not isinstance(error, ConfigError):
        return ResourceResult(UNKNOWN_SERVER_ERROR)
    if resource_type == ResourceType.BROKER:
        return ResourceResult(INVALID_REQUEST, value_message(error))
    message = config_message(error)
    if not message.startswith(("Invalid value ", NO_TIERED_STORAGE)):
        return ResourceResult(INVALID_CONFIG, message)
    kind = ResourceType(resource_type).name
    return ResourceResult(
        INVALID_CONFIG,
        f"Invalid config value for resource ConfigResource(type={kind}, name='{name}'): {message}",
    )


def value_message(error: ConfigError) -> str:
    """Return Kafka's message about a broker's invalid setting."""
    message = _convert_value_error(error) if error.kafka_message is None else error.kafka_message
    if isinstance(error, ReconfigurationRefused):
        # As in Kafka: the exception's text in place of the value, a sentence in place of the key.
        message = (
            f"Invalid value org.apache.kafka.common.config.ConfigException: {message} "
            "for configuration Invalid dynamic configuration"
        )
    return message


def _convert_value_error(error: ConfigError) -> str:
    """Return Kafka's message for a value that the engine refuses by a rule of its own wording."""
    key = find_key(error.key)
    value, rule = error.value, error.rule
    if rule.startswith("requirement failed: "):
        # Kafka's message about contradicting settings names no key. Source:
        # KafkaConfig.validateValues.
        return rule
    if key is not None and rule.startswith("must be a ") and key.type in _NUMBERS:
        rule = f"Not a number of type {key.type.name}"
    elif key is not None and rule == "must be true or false":
        rule = "Expected value to be either true or false"
    elif key is not None and rule.startswith("must be within [") and key.type in _NUMBERS:
        number = _parse_number(key.type, str(value))
        value = format_value(key, number)
        rule = _range_rule(key.valid, number)
    elif key is not None and rule.startswith("must be of ["):
        value = _disallowed_element(key, str(value))
        rule = f"String must be one of: {key.valid.strip('[]')}"
    return f"Invalid value {value} for configuration {error.key}: {rule}"


def _disallowed_element(key: ConfigKey, text: str) -> str:
    """Return the element of a list setting's text that is not allowed.

    For a setting of another type, returns the whole text.
    """
    if key.type is not ConfigType.LIST:
        return text.strip()
    allowed = key.valid.strip("[]").split(", ")
    elements = (element.strip() for element in text.split(","))
    return next((element for element in elements if element not in allowed), text)


def _parse_number(kind: ConfigType, text: str) -> float:
    """Return a value as a number; as in Java, a double may end with d or f."""
    return float(text.strip().rstrip("dDfF")) if kind is ConfigType.DOUBLE else int(text)


def _range_rule(valid: str, number: float) -> str:
    """Return Kafka's text for the bound of `valid`, as `[low,...,high]`, that `number` violates."""
    bounds, _, exception = valid.partition("]")
    low, _, high = bounds.strip("[").partition(",...")
    if exception:
        return f"Value must be between {low} and {high.lstrip(',')} or equal to -1"
    if number < float(low):
        return f"Value must be at least {low}"
    return f"Value must be no more than {high.lstrip(',')}"


def require_own_id(name: str, broker_id: int, *, what: str = "Node", end: str = ",") -> None:
    """Raise InvalidRequest unless `name`, a broker resource's name, is this broker's id.

    Other brokers' settings can only be requested from those. In the message `what` precedes the
    word id, and `end` follows the expected id.
    """
    try:
        # As Java's parseInt: a sign and digits, any zeros before them, within an int.
        number = int(name) if name.isascii() and "_" not in name else None
    except ValueError:
        number = None
    if number is None or name != name.strip() or not -_INT_MAX - 1 <= number <= _INT_MAX:
        raise InvalidRequest(f"{what} id must be an integer, but it is: {name}")
    if number != broker_id:
        raise InvalidRequest(f"Unexpected broker id, expected {broker_id}{end} but received {name}")
