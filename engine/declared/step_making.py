"""Makes steps from differences, with properties before and after; hides secrets. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.declared.resources import ALL_BROKERS, ClusterSetting, Entity, ResourceKind, Settings
from engine.declared.setting_values import OF_CLUSTER, OF_MOVES, is_secret, means_the_same
from engine.declared.steps import (
    ChangeQuotas,
    ChangeSettings,
    CreateRule,
    DeleteRule,
    PropertyChange,
    StateStep,
    StepAction,
)
from engine.security.acls import AclBinding

#: Name of all brokers in files and steps.
DEFAULT_NAME: Final = "default"
_HIDDEN: Final = "(hidden)"


# -- settings


def changed_settings(
    declared: Settings, current: Mapping[str, ClusterSetting]
) -> dict[str, str | None]:
    """Return the declared settings that differ in the cluster, None for those to unset.

    A sensitive setting that is set counts as equal, since its value cannot be read.
    """
    return {
        name: value
        for name, value in sorted(declared.items())
        if not _is_as_declared(value, current.get(name))
    }


def _is_as_declared(value: str | None, setting: ClusterSetting | None) -> bool:
    """Return True if a setting has its declared value; None declares that it is not set."""
    if setting is None or not setting.is_set:
        return value is None
    if value is None:
        return False
    if setting.value is None:
        return setting.is_sensitive
    return means_the_same(value, setting.value, setting.type)


def settings_to_reset(
    declared: Settings, current: Mapping[str, ClusterSetting], *, is_shared: bool = False
) -> dict[str, str | None]:
    """Return the undeclared settings to unset, with the value None.

    Throttles of reassignments are kept. `is_shared` is True for the settings of all brokers, one
    of which cannot be unset.
    """
    kept = {*declared, *OF_MOVES, *((OF_CLUSTER,) if is_shared else ())}
    return {
        name: None
        for name, setting in sorted(current.items())
        if setting.is_set and name not in kept
    }


def settings_step(
    kind: ResourceKind, name: str, settings: Settings, current: Mapping[str, ClusterSetting]
) -> StateStep | None:
    """Return the step that sets and unsets settings of a resource, None if there are none."""
    if not settings:
        return None
    changes = tuple(_setting_change(key, settings[key], current.get(key)) for key in settings)
    label = DEFAULT_NAME if kind is ResourceKind.BROKERS and name == ALL_BROKERS else name
    return StateStep(
        StepAction.CHANGE, kind, label, changes, ChangeSettings(kind, name, dict(settings))
    )


def _setting_change(name: str, value: str | None, setting: ClusterSetting | None) -> PropertyChange:
    """Return the change of a setting as it is shown; values of secrets are hidden."""
    before = setting.value if setting is not None and setting.is_set else None
    if is_secret(name, setting):
        was_set = setting is not None and setting.is_set
        return PropertyChange(name, _HIDDEN if was_set else None, value and _HIDDEN)
    return PropertyChange(name, before, value)


def shown_settings(settings: Mapping[str, str]) -> tuple[PropertyChange, ...]:
    """Return the settings of a new resource as changes; values of secrets are hidden."""
    return tuple(_setting_change(name, value, None) for name, value in sorted(settings.items()))


# -- quotas


def quota_step(
    action: StepAction,
    entity: Entity,
    quotas: Mapping[str, float | None],
    current: Mapping[str, float],
) -> StateStep:
    """Return the step that changes the quotas of an entity; a value of None removes one."""
    changes = tuple(
        PropertyChange(key, amount_text(current.get(key)), amount_text(value))
        for key, value in quotas.items()
    )
    operation = ChangeQuotas(entity, dict(quotas))
    return StateStep(action, ResourceKind.QUOTAS, entity_text(entity), changes, operation)


def entity_text(entity: Entity) -> str:
    """Return an entity as text without spaces: `user=billing,client-id=<default>`."""
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)


def amount_text(amount: float | None) -> str | None:
    """Return an amount as its shortest text, None for None."""
    if amount is None:
        return None
    return str(int(amount)) if amount.is_integer() else repr(amount)


# -- access rules


def rule_step(action: StepAction, rule: AclBinding) -> StateStep:
    """Return the step that creates or deletes an ACL."""
    operation = CreateRule(rule) if action is StepAction.CREATE else DeleteRule(rule)
    return StateStep(action, ResourceKind.ACLS, "", (), operation)
