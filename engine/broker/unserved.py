"""Settings that ask for what this broker does not do: it does not start with them.

A broker that passed over one of these would be open where it should be closed, or lose what it was
told to keep. All others are either served or change nothing here.

| setting | served |
|---|---|
| listeners | those in plain text |
| `authorizer.class.name` | where it would let everyone in: all clients are ANONYMOUS, so with `super.users=User:ANONYMOUS`, or `allow.everyone.if.no.acl.found=true` as long as there are no ACLs |
| policies of topics and configs, tiered storage | no |
| `replica.selector.class` | the two that Kafka brings |
| `process.roles` | no: metadata lies in znodes |
"""  # noqa: E501 - a table

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.broker_config import BrokerConfig
from engine.config.replica_selectors import REPLICA_SELECTORS
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError

if TYPE_CHECKING:
    from engine.znode.client import ZnodeClient

_EVERYONE = "User:ANONYMOUS"
_OFF = ("", "false")
_NOT_CHECKED = "ACLs are not checked yet"
_AUTHORIZER_KEYS = ("allow.everyone.if.no.acl.found", "super.users")
_UNSERVED = (
    ("process.roles", "metadata lies in znodes here, leave it out"),
    ("create.topic.policy.class.name", "policies are not there yet"),
    ("alter.config.policy.class.name", "policies are not there yet"),
    ("remote.log.storage.system.enable", "tiered storage is not there"),
    ("zookeeper.metadata.migration.enable", "there is nothing to migrate to"),
)


def check_served(settings: BrokerSettings, config: BrokerConfig) -> None:
    """Raise ConfigError for a setting that this broker would have to ignore."""
    for listener in config.bound_listeners:
        if listener.security_protocol != "PLAINTEXT":
            raise ConfigError(
                "listeners", listener, "only PLAINTEXT is served yet, TLS and SASL are not"
            )
    for name, rule in _UNSERVED:
        text = settings.set_text(name)
        if text is not None and text.strip().lower() not in _OFF:
            raise ConfigError(name, text, rule)
    selector = config.replica_selector_class
    if selector is not None and selector not in REPLICA_SELECTORS:
        raise ConfigError(
            "replica.selector.class", selector, f"must be one of {', '.join(REPLICA_SELECTORS)}"
        )
    _check_authorizer(settings, config)


async def check_no_acls(settings: BrokerSettings, znodes: ZnodeClient) -> None:
    """Raise ConfigError if there are ACLs that an authorizer would go by and we do not."""
    name = settings.set_text("authorizer.class.name")
    if not name or are_all_superusers(settings):
        return
    # A command checks settings too, and has no store.
    from engine.znode.paths import ACLS, EXTENDED_ACLS

    for root in (ACLS, f"{EXTENDED_ACLS}/prefixed"):
        for path in await _below(znodes, root):
            for resource in await _below(znodes, path):
                raise ConfigError(
                    "authorizer.class.name",
                    name,
                    f"there are ACLs in {resource}, and {_NOT_CHECKED}",
                )


async def _below(znodes: ZnodeClient, path: str) -> list[str]:
    from engine.znode.errors import NoNode

    try:
        return [f"{path}/{name}" for name in await znodes.children(path)]
    except NoNode:
        return []


def passed_over(settings: BrokerSettings) -> list[str]:
    """Return the names that nobody here reads, for the operator: they may be mistyped."""
    return [name for name in settings.unknown_names() if name not in _AUTHORIZER_KEYS]


def _check_authorizer(settings: BrokerSettings, config: BrokerConfig) -> None:
    name = config.authorizer_class_name
    if not name or are_all_superusers(settings) or lets_everyone_in(settings):
        return
    raise ConfigError(
        "authorizer.class.name",
        name,
        f"{_NOT_CHECKED}; it is served only where everyone may do everything "
        f"(super.users={_EVERYONE} or allow.everyone.if.no.acl.found=true)",
    )


def are_all_superusers(settings: BrokerSettings) -> bool:
    """Return whether the users of plain-text listeners may do everything."""
    users = settings.set_text("super.users") or ""
    return _EVERYONE in (user.strip() for user in users.split(";"))


def lets_everyone_in(settings: BrokerSettings) -> bool:
    """Return whether everyone may do what no ACL is about."""
    text = settings.set_text("allow.everyone.if.no.acl.found") or "false"
    return text.strip().lower() == "true"
