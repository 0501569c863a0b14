"""The present SCRAM credentials of all users.

Source: CredentialProvider, CredentialCache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.security.scram import ScramCredential, ScramMechanism, parse_credential

#: Number of random bytes in a salt that a broker creates.
SALT_BYTES: Final = 16


class ScramCredentials:
    """A broker's SCRAM credentials, by user and mechanism."""

    def __init__(self) -> None:
        self._by_user: dict[str, dict[ScramMechanism, ScramCredential]] = {}

    def of(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return a user's credential for a mechanism, None without one."""
        return self._by_user.get(user, {}).get(mechanism)

    def update(self, user: str, settings: Mapping[str, str]) -> list[ScramMechanism]:
        """Replace a user's credentials by those in its settings.

        Returns the mechanisms whose text is invalid: they have no credential.
        """
        unreadable, usable = [], {}
        for mechanism in ScramMechanism:
            text = settings.get(mechanism.key)
            credential = None if text is None else parse_credential(text)
            if credential is not None:
                usable[mechanism] = credential
            elif text is not None:
                unreadable.append(mechanism)
        if usable:
            self._by_user[user] = usable
        else:
            self._by_user.pop(user, None)
        return unreadable

    def keep(self, users: Iterable[str]) -> None:
        """Remove the credentials of all users not in `users`, who were deleted."""
        for user in self._by_user.keys() - set(users):
            del self._by_user[user]
