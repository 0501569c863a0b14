"""Authorizers and quotas of tests."""

from __future__ import annotations

from collections.abc import Callable

from engine.api.admission import NAMED, AclOperation, AclResource, Audit, NoQuotas, Session

Requested = tuple[AclOperation, AclResource, str]


class DenyAll:
    """Lets nobody do anything."""

    version = 0

    def logs_grants(self) -> bool:
        return False

    def may(
        self,
        _session: Session,
        _operation: AclOperation,
        _kind: AclResource,
        _name: str,
        _audit: Audit = NAMED,
    ) -> bool:
        return False

    def may_to_some(self, _session: Session, _operation: AclOperation, _kind: AclResource) -> bool:
        return False

    def may_everything(self, _session: Session) -> bool:
        return False


class AllowEach:
    """Lets everyone do everything, but wants to be asked; `denied` says of what it does not.

    It is asked each time, as where grants are logged, unless `is_remembered`.
    """

    version = 0

    def __init__(
        self,
        denied: Callable[[Requested], bool] = lambda requested: False,
        *,
        is_remembered: bool = False,
    ) -> None:
        self.requested: list[Requested] = []
        self._denied = denied
        self._is_remembered = is_remembered

    def logs_grants(self) -> bool:
        return not self._is_remembered

    def may(
        self,
        _session: Session,
        operation: AclOperation,
        kind: AclResource,
        name: str,
        _audit: Audit = NAMED,
    ) -> bool:
        self.requested.append((operation, kind, name))
        return not self._denied((operation, kind, name))

    def may_to_some(self, _session: Session, _operation: AclOperation, _kind: AclResource) -> bool:
        return True

    def may_everything(self, _session: Session) -> bool:
        return False


class FakeQuotas(NoQuotas):
    """Lets connections rest behind requests of some APIs, until `end_rests`."""

    def __init__(self, delays_ms: dict[int, int]) -> None:
        self._delays_ms = delays_ms
        self._rests: list[Callable[[], None]] = []

    def bounds(self, _session: Session) -> bool:
        return True

    def count_request(self, _session: Session, api_key: int, _client_id: str | None) -> int:
        return self._delays_ms.get(api_key, 0)

    def call_later(self, _delay_ms: int, run: Callable[[], None]) -> None:
        self._rests.append(run)

    def end_rests(self) -> None:
        """Let time go by until all rests are over."""
        rests, self._rests = self._rests, []
        for run in rests:
            run()
