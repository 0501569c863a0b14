"""Principals in the form of settings and ACLs: `User:alice`.

Source: org.apache.kafka.common.utils.SecurityUtils.parseKafkaPrincipal; AclAuthorizer.configure.
"""

from __future__ import annotations

from typing import Final

ANONYMOUS: Final = "User:ANONYMOUS"
#: The type of users' principals, the only one that brokers support.
USER_TYPE: Final = "User"


def user_principal(name: str) -> str:
    """Return the principal of a user, such as `User:alice`."""
    return principal_text(USER_TYPE, name)


def principal_text(kind: str, name: str) -> str:
    """Return the text of a principal from its type and name."""
    return f"{kind}:{name}"


def principal_parts(principal: str) -> tuple[str, str]:
    """Return the type and the name in the text of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name


def is_principal(text: str) -> bool:
    """Return True if a text has the form TYPE:NAME; both may be empty, a name may have colons."""
    return ":" in text


def super_users_of(text: str) -> tuple[frozenset[str], list[str]]:
    """Return the principals in the setting `super.users`, and its invalid parts."""
    if not text:
        return frozenset(), []
    # Java's split drops empty parts at the end.
    parts = [part.strip() for part in text.rstrip(";").split(";")]
    users = frozenset(part for part in parts if is_principal(part))
    return users, [part for part in parts if not is_principal(part)]
