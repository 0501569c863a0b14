"""`kctl users`: users of SCRAM."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, Yes, noun, on_cluster
from kctl.passwords import PasswordOptions

app = noun("Users of SCRAM: list, create, rotate passwords, delete.")

_User = Annotated[str, typer.Argument(metavar="USER", help="The name, without User:.")]
_Mechanism = Annotated[
    str | None,
    typer.Option("--mechanism", metavar="NAME", help="SCRAM-SHA-512 or SCRAM-SHA-256."),
]
_Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations", metavar="N", help="How often the password is hashed: 4096 to 16384."
    ),
]
_Try = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


@app.command("list", epilog="Example: kctl users list")
@on_cluster
def list_(
    cluster: ClusterOptions,
    users: Annotated[
        list[str] | None, typer.Argument(metavar="[USER]...", help="Only these; else all.")
    ] = None,
    output: Output = "table",
) -> int:
    """List users that have a password for SCRAM; nobody can ask for the password itself."""
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
    """Give a new user a password, asked for at the terminal unless an option says where it is.

    Without --mechanism for SCRAM-SHA-512. A user who has one for it already keeps it.
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
    """Give a user another password for each mechanism that it has one for.

    The old one is void at once: connections that are open stay, new ones need the new password.
    """
    from kctl.commands.users.credentials import PasswordRequest, rotate_user

    request = PasswordRequest(user, mechanism, iterations, password, dry_run, output)
    return rotate_user(cluster, request)


@app.command("delete", epilog="Example: kctl users delete billing --dry-run")
@on_cluster
def delete(
    cluster: ClusterOptions,
    users: Annotated[list[str], typer.Argument(metavar="USER...", help="Names, without User:.")],
    mechanism: _Mechanism = None,
    dry_run: _Try = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Delete the passwords of users. Access rules and quotas of theirs stay."""
    from kctl.commands.users.credentials import delete_users

    return delete_users(cluster, users, mechanism, dry_run=dry_run, yes=yes, output=output)
