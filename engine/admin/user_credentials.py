"""SCRAM credentials of users in znodes: creating, removing, listing.

```
/config/users/<u>   {"version":1,"config":{"SCRAM-SHA-256":"salt=…,stored_key=…,…"}}
```

| a user's changes in a request | error |
|---|---|
| an empty name; too few or too many iterations | UNACCEPTABLE_CREDENTIAL |
| an unknown mechanism | UNSUPPORTED_SASL_MECHANISM |
| one mechanism twice | DUPLICATE_RESOURCE |
| removal of a missing credential | RESOURCE_NOT_FOUND |
| an empty salted password | UNKNOWN_SERVER_ERROR |

Either all changes of a user are made or none.

Source: ZN:config; ZkAdminManager.alterUserScramCredentials, describeUserScramCredentials; KIP-554.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.admin.config_admin import ConfigAdmin
from engine.admin.quota_entities import name_of
from engine.errors import ApiError, EngineError
from engine.kafka_errors import (
    DUPLICATE_RESOURCE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_SASL_MECHANISM,
)
from engine.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SaltedPassword,
    ScramMechanism,
    credential_text,
    parse_iterations,
)
from engine.znode.client import ZnodeClient
from engine.znode.paths import CONFIG, USER_CONFIGS, sanitized

_NO_NAME = "Username must not be empty"


class CredentialRefused(ApiError):
    """The changes of a user's credentials are rejected."""


class CredentialChange(NamedTuple):
    """A new credential of a user; `salted` None removes it."""

    user: str
    #: The number in the request, which may be unknown.
    mechanism: int
    salted: SaltedPassword | None


class UserCredentials(NamedTuple):
    """The mechanisms of a user with their iterations, or the error."""

    user: str
    iterations: Mapping[ScramMechanism, int]
    error: EngineError | None = None


class AllRefused(ApiError):
    """The request fails for all users, because one user name cannot be a path."""

    def __init__(self) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, "a user has no path in the store")


_MISSING: Final = "Attempt to delete a user credential that does not exist"
#: Names that sanitizing leaves unchanged, and that are invalid in a path.
_WITHOUT_PATH: Final = frozenset((".", ".."))


class CredentialAdmin:
    """Changes and lists SCRAM credentials."""

    def __init__(self, znodes: ZnodeClient, configs: ConfigAdmin) -> None:
        self._znodes = znodes
        self._configs = configs

    async def alter(self, changes: Sequence[CredentialChange]) -> dict[str, EngineError | None]:
        """Change SCRAM credentials; return the error for each user, None for success.

        Rejected users come first, as in Kafka. A valid change of a user whose name cannot be a path
        fails the request for all users; an empty salted password fails it for all users without
        another error, and nothing is changed.
        """
        by_user: dict[str, list[CredentialChange]] = {}
        for change in changes:
            by_user.setdefault(change.user, []).append(change)
        results: dict[str, EngineError | None] = {}
        for judge in (_error_of_illegal, _error_of_repeated):
            for user in [user for user in by_user if judge(by_user[user])]:
                results[user] = judge(by_user.pop(user))
        if not _WITHOUT_PATH.isdisjoint(by_user):
            return dict.fromkeys((change.user for change in changes), AllRefused())
        if any(_has_empty_password(of_user) for of_user in by_user.values()):
            return results | await self._alter_unprepared(by_user)
        return results | await self._alter_users(by_user)

    async def _alter_unprepared(
        self, by_user: Mapping[str, Sequence[CredentialChange]]
    ) -> dict[str, EngineError | None]:
        """Handle a request in which at least one change has an empty password; return the errors.

        Missing credentials fail their users first. If an empty password remains, all other users
        fail too, otherwise they are altered.
        """
        missing: dict[str, EngineError | None] = {}
        for user, changes in by_user.items():
            found = await self._read(user, sanitized(user))
            if any(
                change.salted is None and ScramMechanism(change.mechanism) not in found.iterations
                for change in changes
            ):
                missing[user] = CredentialRefused(RESOURCE_NOT_FOUND, _MISSING)
        prepared = {user: changes for user, changes in by_user.items() if user not in missing}
        if not any(_has_empty_password(changes) for changes in prepared.values()):
            return missing | await self._alter_users(prepared)
        refused = CredentialRefused(UNKNOWN_SERVER_ERROR, "an empty password has no key")
        return missing | dict.fromkeys(prepared, refused)

    async def _alter_users(
        self, by_user: Mapping[str, Sequence[CredentialChange]]
    ) -> dict[str, EngineError | None]:
        """Change the credentials of valid users one by one; return the error for each.

        As in Kafka, users of whom a credential is missing come first.
        """
        missing: dict[str, EngineError | None] = {}
        altered: dict[str, EngineError | None] = {}
        for user, changes in by_user.items():
            error = await self._alter_user(user, changes)
            is_missing = isinstance(error, ApiError) and error.code == RESOURCE_NOT_FOUND
            (missing if is_missing else altered)[user] = error
        return missing | altered

    async def _alter_user(
        self, user: str, changes: Sequence[CredentialChange]
    ) -> EngineError | None:
        """Write the changed credentials of one user; return the error, None for success."""
        try:
            await self._configs.change(
                f"{USER_CONFIGS}/{sanitized(user)}",
                lambda current: _apply_changes(current, changes),
            )
        except EngineError as error:
            return error
        return None

    async def describe(self, users: Sequence[str]) -> list[UserCredentials]:
        """Return the credentials of the named users; without names, of all users that have any.

        Without names, raises the errors of the store.
        """
        if not users:
            nodes = await self._znodes.children(f"{CONFIG}/{USER_CONFIGS}")
            named = {name_of(node): node for node in nodes}
            found = [
                await self._read(name, node) for name, node in named.items() if name is not None
            ]
            return sorted(one for one in found if one.iterations or one.error)
        counts = Counter(users)
        return [await self._describe_one(user, counts[user]) for user in counts]

    async def _describe_one(self, user: str, count: int) -> UserCredentials:
        """Return the credentials of one user, or the error.

        `count` is how often the request names the user: once is allowed.
        """
        if not user:
            return _failed_result(user, RESOURCE_NOT_FOUND, _NO_NAME)
        if count > 1:
            return _failed_result(
                user,
                DUPLICATE_RESOURCE,
                f"Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}",
            )
        found = await self._read(user, sanitized(user))
        if found.iterations or found.error:
            return found
        return _failed_result(
            user,
            RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {user}",
        )

    async def _read(self, user: str, node: str) -> UserCredentials:
        """Return the iterations of each mechanism in a user's znode, or the error."""
        try:
            config = await self._configs.read(f"{USER_CONFIGS}/{node}")
        except EngineError as error:
            return UserCredentials(user, {}, error)
        iterations = {}
        for mechanism in ScramMechanism:
            if mechanism.key in config:
                count = parse_iterations(config[mechanism.key])
                if count is None:
                    return _failed_result(user, UNKNOWN_SERVER_ERROR, "a credential cannot be read")
                iterations[mechanism] = count
        return UserCredentials(user, iterations)


def _failed_result(user: str, code: int, message: str) -> UserCredentials:
    """Return a user's result without credentials, with an error code and message."""
    return UserCredentials(user, {}, CredentialRefused(code, message))


def _has_empty_password(changes: Sequence[CredentialChange]) -> bool:
    """Return True if a change has an empty salted password, from which no key can be derived."""
    return any(change.salted is not None and not change.salted.password for change in changes)


def _error_of_illegal(changes: Sequence[CredentialChange]) -> EngineError | None:
    """Return the error of an invalid change of one user, None if all are valid.

    The last invalid upsert decides, else the last invalid removal, as in Kafka.
    """
    for is_creation in (True, False):
        kind = [change for change in changes if (change.salted is not None) == is_creation]
        for change in reversed(kind):
            error = _error_of_change(change)
            if error is not None:
                return error
    return None


def _error_of_change(change: CredentialChange) -> EngineError | None:
    """Return the error if the user, mechanism or iterations of a change are invalid, else None."""
    if not change.user:
        return CredentialRefused(UNACCEPTABLE_CREDENTIAL, _NO_NAME)
    if change.mechanism not in tuple(ScramMechanism):
        return CredentialRefused(UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if change.salted is None or ITERATIONS_MIN <= change.salted.iterations <= ITERATIONS_MAX:
        return None
    few_or_many = "few" if change.salted.iterations < ITERATIONS_MIN else "many"
    return CredentialRefused(UNACCEPTABLE_CREDENTIAL, f"Too {few_or_many} iterations")


def _error_of_repeated(changes: Sequence[CredentialChange]) -> EngineError | None:
    """Return the error if two changes of one user have the same mechanism, else None."""
    if len({change.mechanism for change in changes}) == len(changes):
        return None
    return CredentialRefused(
        DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    )


def _apply_changes(
    current: Mapping[str, str], changes: Sequence[CredentialChange]
) -> dict[str, str]:
    """Return a user's settings after all removals, then all upserts, of SCRAM credentials.

    Raises CredentialRefused if a credential to remove is missing.
    """
    config = dict(current)
    for change in changes:
        key = ScramMechanism(change.mechanism).key
        if change.salted is not None:
            continue
        if key not in config:
            raise CredentialRefused(RESOURCE_NOT_FOUND, _MISSING)
        del config[key]
    for change in changes:
        if change.salted is None:
            continue
        mechanism = ScramMechanism(change.mechanism)
        config[mechanism.key] = credential_text(mechanism, change.salted)
    return config
