"""Implementation of `kctl users`: SCRAM credentials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.scram_admin import NewCredential, alter_credentials, describe_credentials
from engine.errors import ApiError, EngineError, StorageError
from engine.host.private_file import create_file
from engine.host.real import RealFiles
from engine.kafka_errors import REQUEST_TIMED_OUT, RESOURCE_NOT_FOUND
from engine.security.passwords import random_password
from engine.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism, may_log_in
from kctl.arguments import UnreadableArgument, is_utf8
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.passwords import (
    NoPassword,
    PasswordOptions,
    check_password_options,
    read_password,
)
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.render.visible import visible_cell

LIST_COLUMNS: Final = (
    Column("user", "USER", is_name=True),
    Column("mechanism", "MECHANISM"),
    Column("iterations", "ITERATIONS", right=True),
)
CHANGE_COLUMNS: Final = (*LIST_COLUMNS, Column("result", "RESULT"))
PASSWORD_COLUMN: Final = Column("password", "PASSWORD", is_optional=True)
DELETE_COLUMNS: Final = (
    Column("user", "USER", is_name=True),
    Column("mechanism", "MECHANISM"),
    Column("result", "RESULT"),
)
Credentials = Mapping[ScramMechanism, int]


class UserExists(EngineError):
    """The user already has a credential, which `create` does not change."""

    def __init__(self, user: str, mechanism: ScramMechanism) -> None:
        super().__init__(f"user {user} has a password for {mechanism.key} already")
        self.hint = f"`kctl users rotate {user}` gives the user another one"
        self.user = user


class NoSuchUser(EngineError):
    """The user has no credential, or none for the mechanism."""

    hint = "`kctl users list` shows them"

    def __init__(self, user: str, mechanism: ScramMechanism | None = None) -> None:
        what = "password" if mechanism is None else f"password for {mechanism.key}"
        super().__init__(f"user {user} has no {what}")
        self.user = user


class PasswordRequest(NamedTuple):
    """The options of `kctl users create` and `rotate`."""

    user: str
    mechanism: str | None
    iterations: int | None
    password: PasswordOptions
    dry_run: bool
    output: str


def list_users(options: ClusterOptions, users: Sequence[str], output: str) -> int:
    """Print the SCRAM credentials of users, all if none is named; returns the exit code."""
    check_format(output)
    for user in users:
        _check_user(user)
    with connect(options) as client:
        described = describe_credentials(client, list(dict.fromkeys(users)))
    rows: list[OutputRow] = []
    failures = 0
    for user, credentials in sorted(described.items()):
        if isinstance(credentials, EngineError):
            report_error(_named(user, credentials), user)
            failures += 1
            continue
        rows += [
            _credential_row(user, mechanism, credentials[mechanism])
            for mechanism in sorted(credentials)
        ]
    return end_with(LIST_COLUMNS, rows, output, failures=failures)


def create_user(options: ClusterOptions, request: PasswordRequest) -> int:
    """Set the SCRAM password of a user who has none for the mechanism; returns the exit code.

    Errors: UserExists, NoPassword, UnreadableArgument.
    """
    check_format(request.output)
    _check_user(request.user)
    mechanism = parse_mechanism(request.mechanism) or ScramMechanism.SCRAM_SHA_512
    _check_iterations(request.iterations)
    _check_password(request)
    with connect(options) as client:
        if mechanism in _request_credentials(client, request.user):
            raise UserExists(request.user, mechanism)
        iterations = {mechanism: request.iterations or ITERATIONS_MIN}
        return _set_passwords(client, request, iterations, "created")


def rotate_user(options: ClusterOptions, request: PasswordRequest) -> int:
    """Replace the SCRAM password of a user; returns the exit code.

    Without --mechanism, that of each mechanism the user has. Errors: NoSuchUser, NoPassword,
    UnreadableArgument.
    """
    check_format(request.output)
    _check_user(request.user)
    mechanism = parse_mechanism(request.mechanism)
    _check_iterations(request.iterations)
    _check_password(request)
    with connect(options) as client:
        credentials = _existing_credentials(client, request.user, mechanism)
        iterations = {m: request.iterations or credentials[m] for m in sorted(credentials)}
        return _set_passwords(client, request, iterations, "changed")


def _set_passwords(
    client: KafkaClient,
    request: PasswordRequest,
    iterations: Credentials,
    result: str,
) -> int:
    """Set the user's password for each mechanism, and print a row for each.

    The password is generated, or read from its source. `result` is the word of the rows, created or
    changed. Returns the exit code.
    """
    note_users_without_login([request.user])
    columns: tuple[Column, ...] = CHANGE_COLUMNS
    rows = [
        _credential_row(request.user, mechanism, count) for mechanism, count in iterations.items()
    ]
    if request.dry_run:
        rows = [{**row, "result": f"would be {result}"} for row in rows]
        return end_with(columns, rows, request.output)
    if request.password.generate:
        password = random_password(client.entropy)
    else:
        password = read_password(request.password, request.user)
    _send_passwords(client, request, iterations, password)
    if request.password.out is not None:
        notify(f"the password is in {request.password.out}")
    elif request.password.generate:
        columns = (*columns, PASSWORD_COLUMN)
        rows = [{**row, "password": password} for row in rows]
    return end_with(columns, [{**row, "result": result} for row in rows], request.output)


def note_users_without_login(users: Iterable[str]) -> None:
    """Print a note for each user whose name is not ASCII: brokers refuse its SCRAM login."""
    for user in users:
        if not may_log_in(user):
            name = visible_cell(user)
            notify(f"note: brokers refuse SCRAM users whose name is not ASCII: {name}")


def _send_passwords(
    client: KafkaClient, request: PasswordRequest, iterations: Credentials, password: str
) -> None:
    """Send the password to the cluster; with --out, write it to the file before.

    The file is removed if the cluster refuses, and kept if the result is unknown. One request for
    each mechanism: KRaft refuses two changes of a user in one.
    """
    new = [NewCredential(m, count, password.encode()) for m, count in iterations.items()]
    path = request.password.out
    if path is not None:
        create_file(path, f"{password}\n".encode())
    for number, credential in enumerate(new):
        try:
            alter_credentials(client, request.user, (), [credential])
        except ApiError as error:
            if path is not None and number == 0 and error.code != REQUEST_TIMED_OUT:
                with suppress(StorageError):
                    RealFiles().remove(path)
            raise


def delete_users(
    options: ClusterOptions,
    users: Sequence[str],
    mechanism_name: str | None,
    *,
    dry_run: bool,
    yes: bool,
    output: str,
) -> int:
    """Delete SCRAM credentials of users, after confirmation; returns the exit code.

    `mechanism_name` None means all mechanisms of a user.
    """
    check_format(output)
    mechanism = parse_mechanism(mechanism_name)
    found: dict[str, list[ScramMechanism]] = {}
    failures = 0
    with connect(options) as client:
        for user in dict.fromkeys(users):
            try:
                _check_user(user)
                found[user] = sorted(_existing_credentials(client, user, mechanism))
            except (NoSuchUser, UnreadableArgument) as error:
                report_error(error, user)
                failures += 1
        if found and not dry_run:
            what = f"Delete the passwords of {', '.join(found)}"
            confirm(f"{what} of {cluster_named(client)}", yes=yes)
        rows: list[OutputRow] = []
        for user, mechanisms in found.items():
            error_of_one = None if dry_run else _delete_credentials(client, user, mechanisms)
            if error_of_one is not None:
                report_error(error_of_one, user)
                failures += 1
                continue
            result = "would be deleted" if dry_run else "deleted"
            rows += [{"user": user, "mechanism": m.key, "result": result} for m in mechanisms]
    return end_with(DELETE_COLUMNS, rows, output, failures=failures)


def _delete_credentials(
    client: KafkaClient, user: str, mechanisms: Iterable[ScramMechanism]
) -> EngineError | None:
    """Delete a user's credentials one by one; return the first error, None if all are deleted.

    KRaft refuses two changes of a user in one request.
    """
    try:
        for mechanism in mechanisms:
            alter_credentials(client, user, [mechanism], ())
    except ApiError as error:
        return error
    return None


def parse_mechanism(text: str | None) -> ScramMechanism | None:
    """Parse the name of a mechanism, None for None; raises UnreadableArgument.

    `scram_sha_256`, `SCRAM-SHA-256` and `sha-256` are the same.
    """
    if text is None:
        return None
    for mechanism in ScramMechanism:
        if text.strip().upper().replace("_", "-") in (mechanism.key, mechanism.key[6:]):
            return mechanism
    expected = ", ".join(mechanism.key for mechanism in ScramMechanism)
    raise UnreadableArgument("a mechanism", text, f"one of {expected}")


def _existing_credentials(
    client: KafkaClient, user: str, mechanism: ScramMechanism | None
) -> Credentials:
    """Return a user's credentials, restricted to `mechanism` unless None.

    Errors: NoSuchUser if there are none, ApiError.
    """
    credentials = _request_credentials(client, user)
    if mechanism is not None:
        credentials = {m: count for m, count in credentials.items() if m is mechanism}
    if not credentials:
        raise NoSuchUser(user, mechanism)
    return credentials


def _request_credentials(client: KafkaClient, user: str) -> Credentials:
    """Return a user's credentials, empty for an unknown user; raises ApiError."""
    credentials = describe_credentials(client, [user])[user]
    if isinstance(credentials, EngineError):
        if isinstance(credentials, ApiError) and credentials.code == RESOURCE_NOT_FOUND:
            return {}
        raise credentials
    return credentials


def _named(user: str, error: EngineError) -> EngineError:
    """Return NoSuchUser in place of RESOURCE_NOT_FOUND, another error unchanged."""
    is_missing = isinstance(error, ApiError) and error.code == RESOURCE_NOT_FOUND
    return NoSuchUser(user) if is_missing else error


def _check_user(user: str) -> None:
    """Raise UnreadableArgument for a user name that is empty or not encodable as UTF-8."""
    if not user or not is_utf8(user):
        raise UnreadableArgument("a user", user, "a name of UTF-8, without User:")


def _check_iterations(count: int | None) -> None:
    """Raise UnreadableArgument for a count that brokers refuse; None means the default."""
    if count is not None and not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
        expected = f"a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        raise UnreadableArgument("a number of iterations", str(count), expected)


def _check_password(request: PasswordRequest) -> None:
    """Raise NoPassword unless options give one source, and a generated password is shown."""
    check_password_options(request.password)
    if request.password.generate and request.password.out is None and request.output == "name":
        raise NoPassword("nobody would see the made password with -o name: add --out FILE")


def _credential_row(user: str, mechanism: ScramMechanism, iterations: int) -> OutputRow:
    """Return the row of a user's SCRAM credential."""
    return {"user": user, "mechanism": mechanism.key, "iterations": iterations}
