"""Operations of IncrementalAlterConfigs on an entity's settings; pure.

| operation | effect |
|---|---|
| SET | the value is replaced |
| DELETE | the setting is removed, if it is set |
| APPEND | elements are added to a list if it does not have them |
| SUBTRACT | each given element is removed from a list once |

A list that is not set starts from the default of its key, not from the broker's value. Empty
elements are like any other, except at the end of a text, where Java's split drops them.

Source: ConfigAdminManager.prepareIncrementalConfigs of 3.9.1.
For a list operation on an unknown or dynamic-only key, and for an unknown operation on a topic,
Kafka fails without a specific error code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias

from engine.admin.config_errors import InvalidConfiguration, InvalidRequest, UnexpectedChange
from engine.config.key import ConfigKey, ConfigType, UpdateMode
from engine.wire import messages

#: A setting to change; in AlterConfigs it has no operation.
AlterableConfig: TypeAlias = (
    "messages.AlterConfigsRequest.AlterableConfig"
    " | messages.IncrementalAlterConfigsRequest.AlterableConfig"
)


class Operation(IntEnum):
    """The operation on one setting, with Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3

    @classmethod
    def name_of(cls, number: int) -> str:
        """Return the name of an operation of IncrementalAlterConfigs; an unknown number as text."""
        return cls(number).name if number in _OPERATIONS else str(number)


_OPERATIONS = frozenset(Operation)


def check_configs(configs: Sequence[AlterableConfig]) -> None:
    """Raise InvalidRequest if a resource's changes have a key twice, or a value is missing."""
    names = [config.name for config in configs]
    if len(set(names)) < len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    without = [
        config.name
        for config in configs
        if config.value is None and getattr(config, "config_operation", None) != Operation.DELETE
    ]
    if without:
        raise InvalidRequest(f"Null value not supported for : {', '.join(without)}")


def apply_operations(
    current: Mapping[str, str],
    configs: Iterable[messages.IncrementalAlterConfigsRequest.AlterableConfig],
    keys: Mapping[str, ConfigKey],
) -> dict[str, str]:
    """Return the settings `current` after the operations of IncrementalAlterConfigs, in order.

    Raises InvalidConfiguration and UnexpectedChange for an invalid operation.
    """
    changed = dict(current)
    for config in configs:
        name, operation, value = config.name, config.config_operation, config.value
        if operation == Operation.DELETE:
            changed.pop(name, None)
            continue
        assert value is not None
        if operation == Operation.SET:
            changed[name] = value
        elif operation == Operation.APPEND:
            old = _list_elements(name, operation, changed, keys)
            new = [element for element in _split(value) if element not in old]
            changed[name] = ",".join(old + new)
        elif operation == Operation.SUBTRACT:
            left = _list_elements(name, operation, changed, keys)
            for element in _split(value):
                if element in left:
                    left.remove(element)
            changed[name] = ",".join(left)
        else:
            raise UnexpectedChange(f"an operation {operation}")
    return changed


def _list_elements(
    name: str, operation: int, current: Mapping[str, str], keys: Mapping[str, ConfigKey]
) -> list[str]:
    """Return the elements of a list setting for APPEND or SUBTRACT: as set, or the default's.

    Raises UnexpectedChange for an unknown key, InvalidConfiguration if the key is no list.
    """
    key = keys.get(name)
    if key is None or key.update_mode is UpdateMode.DYNAMIC_ONLY:
        raise UnexpectedChange(f"a list of the unknown key {name}")
    if key.type is not ConfigType.LIST:
        verb = Operation(operation).name.lower()
        raise InvalidConfiguration(f"Config value {verb} is not allowed for config key: {name}")
    text = current.get(name, key.default)
    return _split(text) if text else []


def _split(text: str) -> list[str]:
    """Return the elements of a list setting, with surrounding blanks.

    Source: String.split of Java.
    """
    return text.rstrip(",").split(",") if text.strip(",") or not text else []
