"""Plan of a cluster: the number of brokers, their listeners and settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import ConfigError

if TYPE_CHECKING:
    from engine.config.listeners import ListenerAddress
    from engine.config.settings import BrokerSettings

FIRST_BROKER_ID = 1
# The listener name of each broker, unless the settings have one.
_LISTENER = "PLAINTEXT"
_INTERNAL_REPLICAS = 3
_INTERNAL_MIN_ISR = 2
_LOG_DIR_NAMES = ("log.dirs", "log.dir")
# Settings that must differ between brokers cannot be in a plan.
_OWN_OF_EACH = ("broker.id", *_LOG_DIR_NAMES)
# Settings whose ports are those of the first broker.
_WITH_PORTS = ("listeners", "advertised.listeners")
_PORT = re.compile(r":([1-9][0-9]*)(?=\s*(?:,|$))")
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|::1")
_CLIENT_AUTH = "ssl.client.auth"
_HAS_CERTIFICATES = "required"


class ClusterPlan(NamedTuple):
    """The plan of a cluster; `settings` has broker keys."""

    broker_count: int = 1
    host: str = "127.0.0.1"
    port: int = 9092
    settings: dict[str, str] = {}  # noqa: RUF012 (never changed in place)
    #: Port of the metadata store for ZooKeeper clients; 0 for the last one, or any.
    zookeeper_port: int = 0
    #: Racks, assigned to the brokers in turn; empty for no racks.
    racks: tuple[str, ...] = ()
    #: Whether each broker has a separate process.
    is_in_processes: bool = False
    #: Ids of removed brokers, which are not reused.
    removed_ids: tuple[int, ...] = ()
    #: Number of log directories per broker.
    log_dir_count: int = 1
    #: Whether listeners for other machines may accept clients without authentication.
    is_insecure: bool = False

    def broker_ids(self) -> list[int]:
        """Return the ids of the plan's brokers, in order."""
        known = FIRST_BROKER_ID + self.broker_count + len(self.removed_ids)
        return [id_ for id_ in range(FIRST_BROKER_ID, known) if id_ not in self.removed_ids]

    def rack_of(self, broker_id: int) -> str | None:
        """Return the rack of a broker, None without one."""
        if not self.racks:
            return self.settings.get("broker.rack")
        return self.racks[(broker_id - FIRST_BROKER_ID) % len(self.racks)]

    def with_one_more(self) -> tuple[ClusterPlan, int]:
        """Return the plan with one more broker, and its id, which was never used before."""
        broker_id = FIRST_BROKER_ID + self.broker_count + len(self.removed_ids)
        return self._replace(broker_count=self.broker_count + 1), broker_id

    def without(self, broker_id: int) -> ClusterPlan:
        """Return the plan without one of its brokers."""
        removed = tuple(sorted({*self.removed_ids, broker_id}))
        return self._replace(broker_count=self.broker_count - 1, removed_ids=removed)


def broker_settings(
    plan: ClusterPlan, log_dirs: Sequence[str], broker_id: int, port: int | None = None
) -> dict[str, str]:
    """Return the settings of one broker; those in the plan override the defaults here.

    `log_dirs` are its log directories. `port` is used unless the plan sets the port.
    """
    # Internal topics cannot have more replicas than there are brokers.
    replicas = str(min(plan.broker_count, _INTERNAL_REPLICAS))
    port = plan.port + broker_id - FIRST_BROKER_ID if plan.port else port or 0
    rack = plan.rack_of(broker_id)
    return {
        **({} if rack is None else {"broker.rack": rack}),
        "broker.id": str(broker_id),
        "listeners": f"{_listener_name(plan)}://{plan.host}:{port}",
        "log.dirs": ",".join(log_dirs),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(plan.broker_count, _INTERNAL_MIN_ISR)),
        **plan.settings,
        **_shifted_listeners(plan, broker_id - FIRST_BROKER_ID),
    }


def _listener_name(plan: ClusterPlan) -> str:
    """Return the listener name of brokers whose plan sets no listeners."""
    return plan.settings.get("inter.broker.listener.name", _LISTENER)


def _shifted_listeners(plan: ClusterPlan, number: int) -> dict[str, str]:
    """Return the plan's listeners for one broker: `number` (from 0) is added to each port."""
    return {
        name: _PORT.sub(lambda port: f":{int(port[1]) + number}", plan.settings[name])
        for name in _WITH_PORTS
        if number and name in plan.settings
    }


def unauthenticated_listeners(static: Mapping[str, str]) -> list[str]:
    """Return the listeners that accept clients from other machines without authentication.

    Raises ConfigError.
    """
    from engine.config.broker_config import BrokerConfig
    from engine.config.settings import BrokerSettings

    settings = BrokerSettings(static)
    return [
        str(listener)
        for listener in BrokerConfig.parse(settings).bound_listeners
        if not (_LOOPBACK.fullmatch(listener.host) or _requires_authentication(listener, settings))
    ]


def _requires_authentication(listener: ListenerAddress, settings: BrokerSettings) -> bool:
    """Return True if a listener's clients must authenticate; raises ConfigError."""
    from engine.broker.listener_oauth import believes_unsecured_tokens
    from engine.config.listener_settings import ListenerSettings

    of_listener = ListenerSettings(settings, listener.name)
    if listener.has_sasl:
        # With SASL, certificates are required only by the listener's own setting.
        certificates = of_listener.own_text(_CLIENT_AUTH)
    else:
        certificates = str(of_listener.value(_CLIENT_AUTH))
    if listener.has_tls and certificates == _HAS_CERTIFICATES:
        return True
    return listener.has_sasl and not believes_unsecured_tokens(of_listener)


def _check_ports(plan: ClusterPlan) -> None:
    """Raise ConfigError if two brokers of the plan would have the same port."""
    text = plan.settings.get("listeners", "")
    numbers = [broker_id - FIRST_BROKER_ID for broker_id in plan.broker_ids()]
    ports = [int(port) + number for port in _PORT.findall(text) for number in numbers]
    if len(set(ports)) < len(ports):
        rule = f"each of {plan.broker_count} brokers has the ports after those of the one before"
        raise ConfigError("listeners", text, f"{rule}: leave room between them")


def check_plan(plan: ClusterPlan) -> list[str]:
    """Return the names of a plan's unknown settings; raises ConfigError for an invalid plan."""
    if "zookeeper.connect" in plan.settings:
        raise ConfigError(
            "zookeeper.connect",
            plan.settings["zookeeper.connect"],
            "an embedded cluster has its own store; `kctl broker run` joins another one's",
        )
    # Every command that finds the embedded cluster imports this module; few check a plan.
    from engine.broker.unserved import check_served, passed_over
    from engine.cluster.store_security import store_security
    from engine.config.broker_config import BrokerConfig
    from engine.config.settings import BrokerSettings

    if plan.racks and "broker.rack" in plan.settings:
        raise ConfigError(
            "broker.rack", plan.settings["broker.rack"], "--racks gives each broker its own"
        )
    named = next((name for name in _LOG_DIR_NAMES if name in plan.settings), None)
    if plan.log_dir_count > 1 and named is not None:
        raise ConfigError(named, plan.settings[named], "--log-dirs gives each broker its own")
    for name in _OWN_OF_EACH:
        if plan.broker_count > 1 and name in plan.settings:
            raise ConfigError(
                name,
                plan.settings[name],
                f"each of {plan.broker_count} brokers has one of its own, "
                "and what is set here is for all of them",
            )
    _check_ports(plan)
    settings = BrokerSettings(broker_settings(plan, ["/"], FIRST_BROKER_ID))
    check_served(settings, BrokerConfig.parse(settings))
    store_security(settings, listens=True)
    return passed_over(settings)
