"""Admission: the check before every handler and every fast path.

```
request ─ admit ─┬─ the rule of its row denies ─> the API's response with an error (`denied.py`)
                 ├─ a quota is used up ─────────> served; the response has the throttle time
                 └─ handler ─ may(…) of each topic, group, transactional id
fast path ─ may_take_fast_path ─ no ─ is_granted of its topic and group ─ no: the path above
```

`Session.may_take_fast_path` is true if no rule and no quota can deny or delay any request of this
client, so that no check is needed. It is computed once a session, and again by `Admission.change`.
Where rules can deny something, a session caches what they granted (`is_granted`) until a rule or
its principal changes: then a fast path serves a client that the general path did not deny anything.

Source: D24; KafkaApis, AuthHelper.
Differs: Kafka knows a quota's delay only after the request; here it is known before, except for
sizes that only the response has: a fetch's bytes, a topic's partitions (`Session.on_throttle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from engine.admin.mutation_quota import MutationQuota, NoMutationQuota
from engine.api.client_host import host_of
from engine.errors import ApiError
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from engine.limits import GRANTS_KEPT_MAX, TOPIC_NAME_CHARS_MAX
from engine.security.acls import CLUSTER_NAME, AclOperation, AclResource
from engine.security.principals import ANONYMOUS

__all__ = [
    "ADMITTED",
    "CLUSTER_NAME",
    "NAMED",
    "UNLOGGED",
    "UNLOGGED_DENIAL",
    "AclOperation",
    "AclResource",
    "Admission",
    "AllowAll",
    "Audit",
    "Authorizer",
    "NoQuotas",
    "NotAuthorized",
    "Quotas",
    "Rule",
    "Session",
    "Verdict",
    "allow_all",
]


class Rule(Enum):
    """The clients that may call an API."""

    ANYONE = "anyone, also before authentication"
    PER_RESOURCE = "the handler checks each topic, group or transaction"
    CLUSTER_DESCRIBE = "Describe on the cluster"
    CLUSTER_ALTER = "Alter on the cluster"
    CLUSTER_DESCRIBE_CONFIGS = "DescribeConfigs on the cluster"
    CLUSTER_ALTER_CONFIGS = "AlterConfigs on the cluster"
    CLUSTER_ACTION = "ClusterAction on the cluster: brokers only"
    CLUSTER_ALTER_OR_ACTION = "Alter or ClusterAction on the cluster"


#: The error code and Kafka's message for a client that may not call an API.
_REFUSALS = {
    AclResource.TOPIC: (TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    AclResource.GROUP: (GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    AclResource.CLUSTER: (CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    AclResource.TRANSACTIONAL_ID: (
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


class NotAuthorized(ApiError):
    """A client may not perform an operation on a resource of a kind."""

    def __init__(self, kind: AclResource) -> None:
        super().__init__(*_REFUSALS[kind])
        self.kind = kind


#: The operations of fast paths: on topics and groups.
_REMEMBERED: Final = frozenset({AclOperation.READ, AclOperation.WRITE})

#: The operations on the cluster of which a rule requires one, in the order of the checks.
_CLUSTER_OPERATIONS = {
    Rule.CLUSTER_DESCRIBE: (AclOperation.DESCRIBE,),
    Rule.CLUSTER_ALTER: (AclOperation.ALTER,),
    Rule.CLUSTER_DESCRIBE_CONFIGS: (AclOperation.DESCRIBE_CONFIGS,),
    Rule.CLUSTER_ALTER_CONFIGS: (AclOperation.ALTER_CONFIGS,),
    Rule.CLUSTER_ACTION: (AclOperation.CLUSTER_ACTION,),
    Rule.CLUSTER_ALTER_OR_ACTION: (AclOperation.ALTER, AclOperation.CLUSTER_ACTION),
}


class Audit(NamedTuple):
    """Logging of a decision about a resource, for audits.

    Source: Action and AclAuthorizer.logAuditMessage of 3.9.1.
    """

    #: How often the request names the resource.
    reference_count: int = 1
    #: True if a denial is logged at INFO: the client named the resource itself.
    logs_denial: bool = True
    #: True if a grant is logged at DEBUG: access is granted, and not only a list filtered.
    logs_grant: bool = True


#: For a resource that the request names.
NAMED: Final = Audit()
#: For a check whose denial is not final: another ACL may allow it, or the resource is left out.
UNLOGGED_DENIAL: Final = Audit(logs_denial=False)
#: For a check that only computes the authorized operations in a response.
UNLOGGED: Final = Audit(logs_denial=False, logs_grant=False)


class Session:
    """The state of one connection: its client, principal and parked requests."""

    __slots__ = (
        "__weakref__",
        "_grants",
        "_grants_version",
        "_host",
        "admission",
        "api_key",
        "client_software_name",
        "client_software_version",
        "is_by_token",
        "is_own_broker",
        "is_undelayed",
        "listener",
        "may_take_fast_path",
        "on_throttle",
        "parked",
        "peer",
        "principal",
        "request_bytes",
    )

    def __init__(
        self,
        peer: str,
        admission: Admission,
        listener: str = "PLAINTEXT",
        *,
        is_own_broker: bool = False,
    ) -> None:
        """Create the session of a client's connection; `peer` is its address with port.

        `is_own_broker` is True for a broker of this process, to which no ACL or quota applies.
        """
        self.peer = peer
        self.is_own_broker = is_own_broker
        #: Host of `peer`, computed when an authorizer first needs it.
        self._host: str | None = None
        self.admission = admission
        self.listener = listener
        #: ANONYMOUS until an authentication has succeeded; changed by a later one.
        self.principal = ANONYMOUS
        #: API key of the request that is served now, −1 before the first. Set only where something
        #: may be denied to the client.
        self.api_key = -1
        #: Whether the client authenticated with a delegation token.
        self.is_by_token = False
        #: Software name and version of the client's ApiVersions request.
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        #: Size of the request that is served now. Set only where a quota may bound the client.
        self.request_bytes = 0
        #: Mutes the connection for a throttle time in ms.
        self.on_throttle: Callable[[int], None] = lambda _delay_ms: None
        #: State kept between two requests of the session, by its owner, each with the function that
        #: ends it.
        self.parked: dict[object, Callable[[], None]] = {}
        #: Whether nothing can be denied or delayed to this client. Set by its admission, and again
        #: after each change of ACLs or quotas.
        self.may_take_fast_path = False
        #: Whether no quota can delay this client. Set together with `may_take_fast_path`.
        self.is_undelayed = False
        #: Operations that ACLs of `_grants_version` have granted, by the name of a topic or group:
        #: one bit for each pair of resource type and operation.
        self._grants: dict[str, int] = {}
        self._grants_version = -1
        admission.begin(self)

    @property
    def host(self) -> str:
        """Return the client's address without the port, in the form that ACLs have."""
        if self._host is None:
            self._host = host_of(self.peer)
        return self._host

    def authenticate(self, principal: str, *, by_token: bool = False) -> None:
        """Set the principal after SASL or TLS authentication.

        Its ACLs and quotas apply from now on. `by_token`: a delegation token authenticated it.
        """
        self.principal = principal
        self.is_by_token = by_token
        self.admission.begin(self)

    def end(self) -> None:
        """Run the end functions of the parked state, because the connection is closed."""
        parked, self.parked = self.parked, {}
        for end_one in parked.values():
            end_one()

    def may(
        self, operation: AclOperation, kind: AclResource, name: str, audit: Audit = NAMED
    ) -> bool:
        """Return True if this client may perform an operation on a resource.

        Grants are cached for the fast path; `audit` decides how the authorizer logs the result.
        """
        if self.may_take_fast_path or self.is_granted(operation, kind, name):
            return True
        authorizer = self.admission.authorizer
        may = authorizer.may(self, operation, kind, name, audit)
        if may and operation in _REMEMBERED:
            self._cache_grant(authorizer.version, 1 << (kind << 4 | operation), name)
        return may

    def is_granted(self, operation: AclOperation, kind: AclResource, name: str) -> bool:
        """Return True if ACLs have granted this operation before, and have not changed since.

        False decides nothing: the authorizer must be called. Grants that have to be logged are
        never cached.
        """
        authorizer = self.admission.authorizer
        return (
            self._grants.get(name, 0) >> (kind << 4 | operation) & 1 == 1
            and self._grants_version == authorizer.version
            and not authorizer.logs_grants()
        )

    def is_admitted(self, operation: AclOperation, kind: AclResource, name: str) -> bool:
        """Return True if it is known, without the authorizer, that an operation is neither denied
        nor delayed.

        False decides nothing: the request then takes the path that asks the authorizer.
        """
        return self.may_take_fast_path or (
            self.is_undelayed and self.is_granted(operation, kind, name)
        )

    def _cache_grant(self, version: int, bit: int, name: str) -> None:
        """Cache that ACLs of `version` have granted an operation on the resource `name`.

        `bit` is the resource type and operation as in `is_granted`. A long name is not cached. New
        ACLs or a full cache clear all grants.
        """
        if len(name) > TOPIC_NAME_CHARS_MAX:
            return
        if self._grants_version != version or len(self._grants) >= GRANTS_KEPT_MAX:
            self._grants = {}
            self._grants_version = version
        self._grants[name] = self._grants.get(name, 0) | bit

    def forget_grants(self) -> None:
        """Drop cached grants: the principal or the rules have changed."""
        self._grants = {}

    def may_on_cluster(self, operation: AclOperation, audit: Audit = NAMED) -> bool:
        """Return True if this client may perform an operation on the cluster resource."""
        return self.may(operation, AclResource.CLUSTER, CLUSTER_NAME, audit)

    def topics_not_creatable(self, topics: Iterable[str]) -> list[str]:
        """Return the topics that this client may not create, by ACLs on the cluster or topic."""
        if self.may_on_cluster(AclOperation.CREATE, UNLOGGED_DENIAL):
            return []
        return [
            topic for topic in topics if not self.may(AclOperation.CREATE, AclResource.TOPIC, topic)
        ]

    def operations_on(self, kind: AclResource, name: str, operations: int) -> int:
        """Return the bit set of operations that this client may perform on a resource.

        `operations` is the bit set of candidates: bit number N is the AclOperation N.
        """
        if self.may_take_fast_path:
            return operations
        return sum(
            1 << operation
            for operation in AclOperation
            if operations >> operation & 1 and self.may(operation, kind, name, UNLOGGED)
        )


class Authorizer(Protocol):
    """Decides which operations a client may perform; never waits."""

    @property
    def version(self) -> int:
        """Return a number that changes with each change of the ACLs."""

    def logs_grants(self) -> bool:
        """Return True if grants are logged, so that no grant may be cached."""

    def may(
        self,
        session: Session,
        operation: AclOperation,
        kind: AclResource,
        name: str,
        audit: Audit = NAMED,
    ) -> bool:
        """Return True if a client may perform an operation on a resource.

        `audit` is how to log it.
        """

    def may_to_some(self, session: Session, operation: AclOperation, kind: AclResource) -> bool:
        """Return True if a client may perform an operation on at least one resource of a kind."""

    def may_everything(self, session: Session) -> bool:
        """True if a client may do everything, so that no ACL has to be checked."""


class Quotas(Protocol):
    """Measures clients, and decides the throttle time of those above their quotas."""

    def bounds(self, session: Session) -> bool:
        """True if any quota may ever throttle a client: it then takes no fast path."""

    def count_request(self, session: Session, api_key: int, client_id: str | None) -> int:
        """Count a request towards the quota of its client.

        Returns the throttle time of the connection in ms, 0 for none.
        """

    def work_ns(self) -> int:
        """Return nanoseconds since an arbitrary start.

        The difference of two is a handler's time.
        """

    def count_work(self, session: Session, client_id: str | None, work_ns: int) -> None:
        """Count the nanoseconds that a handler worked for a client, for the request quota."""

    def fetch_bytes_max(self, session: Session, client_id: str | None) -> int | None:
        """Return how many bytes the response to one Fetch may have, None without a quota."""

    def count_fetch(self, session: Session, client_id: str | None, size_bytes: int) -> int:
        """Count a fetch's bytes and return 0; above the quota return the throttle time in ms.

        In that case the bytes are not counted: the response has no records.
        """

    def mutation_quota(
        self, session: Session, client_id: str | None, *, is_strict: bool
    ) -> MutationQuota:
        """Return the quota that counts the partitions which a request creates or deletes.

        Strict: partitions beyond the quota are refused; otherwise only a throttle time follows.
        """

    def call_later(self, delay_ms: int, run: Callable[[], None]) -> None:
        """Call `run` after `delay_ms`, a throttle time."""


class AllowAll:
    """Allows every client everything, as a broker without `authorizer.class.name` does."""

    version: Final = 0

    def logs_grants(self) -> bool:
        """Return False: no decision is logged."""
        return False

    def may(
        self,
        _session: Session,
        _operation: AclOperation,
        _kind: AclResource,
        _name: str,
        _audit: Audit = NAMED,
    ) -> bool:
        """Return True: a broker without an authorizer denies nothing."""
        return True

    def may_to_some(self, _session: Session, _operation: AclOperation, _kind: AclResource) -> bool:
        """Return True: a broker without an authorizer denies nothing."""
        return True

    def may_everything(self, _session: Session) -> bool:
        """Return True: a broker without an authorizer denies nothing."""
        return True


class NoQuotas:
    """Throttles no client."""

    def bounds(self, _session: Session) -> bool:
        """Return False: without quotas no client is throttled."""
        return False

    def count_request(self, _session: Session, _api_key: int, _client_id: str | None) -> int:
        """Return a throttle time of 0: without quotas no client is throttled."""
        return 0

    def work_ns(self) -> int:
        """Return 0: no handler's time is measured."""
        return 0

    def count_work(self, _session: Session, _client_id: str | None, _work_ns: int) -> None:
        """Count nothing: without quotas the time of handlers does not matter."""

    def fetch_bytes_max(self, _session: Session, _client_id: str | None) -> int | None:
        """Return None: without quotas a Fetch response has no bound but that of its request."""
        return None

    def count_fetch(self, _session: Session, _client_id: str | None, _size_bytes: int) -> int:
        """Return a throttle time of 0: without quotas no client is throttled."""
        return 0

    def mutation_quota(
        self, _session: Session, _client_id: str | None, *, is_strict: bool
    ) -> MutationQuota:
        """Return a quota that neither refuses nor delays the creation of partitions."""
        return NoMutationQuota()

    def call_later(self, _delay_ms: int, run: Callable[[], None]) -> None:
        """Call `run` at once: no connection is throttled."""
        run()


class Verdict(NamedTuple):
    """The decision on a request: an error code or 0, and the connection's throttle time."""

    error_code: int = 0
    delay_ms: int = 0


ADMITTED = Verdict()


class Admission:
    """The authorizer and the quotas of one broker.

    `broker_listeners` are the listeners that accept requests of brokers, None for all: Kafka serves
    them on every listener, to principals that may act for the cluster.
    """

    def __init__(
        self,
        authorizer: Authorizer,
        quotas: Quotas,
        broker_listeners: frozenset[str] | None = None,
    ) -> None:
        """Create the rules by which sessions are admitted: ACLs, quotas, and listeners for brokers.

        `broker_listeners` are the listeners that accept inter-broker requests; None means all.
        """
        self.authorizer = authorizer
        self.quotas = quotas
        self.broker_listeners = broker_listeners
        #: Open sessions, whose fast paths `refresh` allows or forbids again.
        self._sessions: WeakKeyDictionary[Session, None] = WeakKeyDictionary()

    def begin(self, session: Session) -> None:
        """Register a session, and set which fast paths it may take, now and after each change."""
        self._sessions[session] = None
        self._decide(session)

    def change(
        self,
        authorizer: Authorizer,
        quotas: Quotas,
        broker_listeners: frozenset[str] | None = None,
    ) -> None:
        """Replace authorizer and quotas, also for sessions that are open."""
        self.authorizer = authorizer
        self.quotas = quotas
        self.broker_listeners = broker_listeners
        self.refresh()

    def refresh(self) -> None:
        """Decide again for each open session whether it may take fast paths.

        Called when ACLs or quotas have changed.
        """
        for session in self._sessions:
            self._decide(session)

    def _decide(self, session: Session) -> None:
        """Drop a session's cached grants, and decide whether it may take fast paths."""
        session.forget_grants()
        session.is_undelayed = not self.quotas.bounds(session)
        session.may_take_fast_path = self.is_open_to(session)

    @property
    def sessions(self) -> list[Session]:
        """Return the open sessions, in no order."""
        return list(self._sessions)

    def is_open_to(self, session: Session) -> bool:
        """True if nothing can be denied or delayed to a client, by ACLs, quotas or its listener."""
        return (
            self.authorizer.may_everything(session)
            and not self.quotas.bounds(session)
            and self._is_for_brokers(session)
        )

    def admit(
        self,
        session: Session,
        rule: Rule,
        *,
        api_key: int,
        client_id: str | None,
        is_inter_broker: bool,
        is_free: bool = False,
    ) -> Verdict:
        """Return the error code (0: admitted) and throttle time of a request, from its header.

        `rule` is the right that the request's API needs. A request that `is_free`, of a broker, has
        no quota; if it is denied it has one, because its sender is then no broker.

        Source: RequestHandlerHelper.handleError.
        """
        if session.may_take_fast_path:
            return ADMITTED
        operations = _CLUSTER_OPERATIONS.get(rule)
        is_denied = operations is not None and not _may_one_of(session, operations)
        if is_denied or (is_inter_broker and not self._is_for_brokers(session)):
            error_code = CLUSTER_AUTHORIZATION_FAILED
        else:
            error_code = 0
        is_counted = error_code or not is_free
        delay_ms = 0 if not is_counted else self.quotas.count_request(session, api_key, client_id)
        return Verdict(error_code, delay_ms)

    def _is_for_brokers(self, session: Session) -> bool:
        """True if the client's listener accepts inter-broker requests."""
        return self.broker_listeners is None or session.listener in self.broker_listeners


def _may_one_of(session: Session, operations: tuple[AclOperation, ...]) -> bool:
    """Return True if a client may perform one of the operations on the cluster.

    If all are denied only the last denial is logged.
    """
    *others, last = operations
    return any(
        session.may_on_cluster(operation, UNLOGGED_DENIAL) for operation in others
    ) or session.may_on_cluster(last)


def allow_all() -> Admission:
    """Return the admission rules of a broker without authorizer and quotas."""
    return Admission(AllowAll(), NoQuotas())
