"""`kctl users`: SCRAM credentials of users."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster
from kctl.passwords import PasswordOptions

app = noun("Users of SCRAM: list, create, rotate passwords, delete.")

_User = Annotated[str, typer.Argument(metavar="USER", help="User name, without User:.")]
_Mechanism = Annotated[
    str | None,
    typer.Option("--mechanism", metavar="NAME", help="SCRAM-SHA-512 or SCRAM-SHA-256."),
]
_Iterations = Annotated[
    int | None,
    typer.Option("--iterations", metavar="N", help="Iterations of hashing: 4096 to 16384."),
]
_Try = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


@app.command("list", epilog="Example: kctl users list")
@on_cluster
def list_(
    cluster: ClusterOptions,
    users: Annotated[
        list[str] | None, typer.Argument(metavar="[USER]...", help="Users; default: all.")
    ] = None,
    output: Output = "table",
) -> int:
    """List users with SCRAM credentials; passwords cannot be read."""
    from kctl.commands.users.credentials import list_users

    return list_users(cluster, users or [], output)


@app.command(
    "create",
    epilog="Examples: kctl users create billing --generate --out billing.password · kctl users "
    "create alice --password-file - < secret",
)
@on_cluster
def create(
    cluster: ClusterOptions,
    user: _User,
    password: PasswordOptions,
    mechanism: _Mechanism = None,
    iterations: _Iterations = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Set the password of a new user; prompts for it unless an option gives its source.

    The default mechanism is SCRAM-SHA-512. An existing password for the mechanism is not changed.
    """
    from kctl.commands.users.credentials import PasswordRequest, create_user

    request = PasswordRequest(user, mechanism, iterations, password, dry_run, output)
    return create_user(cluster, request)


@app.command("rotate", epilog="Example: kctl users rotate billing --generate --out new.password")
@on_cluster
def rotate(
    cluster: ClusterOptions,
    user: _User,
    password: PasswordOptions,
    mechanism: _Mechanism = None,
    iterations: _Iterations = None,
    dry_run: _Try = False,
    output: Output = "table",
) -> int:
    """Change a user's password for each mechanism with an existing one.

    The old password is invalid at once: open connections stay, new ones need the new password.
    """
    from kctl.commands.users.credentials import PasswordRequest, rotate_user

    request = PasswordRequest(user, mechanism, iterations, password, dry_run, output)
    return rotate_user(cluster, request)


@app.command("delete", epilog="Example: kctl users delete billing --dry-run")
@on_cluster
def delete(
    cluster: ClusterOptions,
    users: Annotated[
        list[str], typer.Argument(metavar="USER...", help="User names, without User:.")
    ],
    mechanism: _Mechanism = None,
    dry_run: _Try = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete the passwords of users. Their access rules and quotas are kept."""
    from kctl.commands.users.credentials import delete_users

    return delete_users(cluster, users, mechanism, dry_run=dry_run, yes=yes, output=output)
