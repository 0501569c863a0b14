"""Implementation of `kctl tokens`: delegation tokens of a cluster."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.client.settings import ClientSettings
from engine.client.token_admin import (
    IssuedToken,
    Principal,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from engine.config.java_properties import encode_settings
from engine.errors import ApiError, EngineError
from engine.host.private_file import open_new_file
from engine.host.streams import TlsSettings
from engine.host.tls_stores import BadTlsFile, is_java_store, read_store_file
from engine.kafka_errors import REQUEST_TIMED_OUT
from engine.security.principals import USER_TYPE, principal_parts, principal_text
from engine.security.scram import ScramMechanism
from kctl import exits
from kctl.arguments import UnreadableArgument, is_utf8
from kctl.command_results import end_with
from kctl.commands.users.credentials import parse_mechanism
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify
from kctl.durations import parse_duration_ms
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

LIST_COLUMNS: Final = (
    Column("token_id", "TOKEN", is_name=True),
    Column("owner", "OWNER"),
    Column("requester", "REQUESTER", wide=True),
    Column("renewers", "RENEWERS", kind="string[]"),
    Column("issued_ms", "ISSUED", is_time=True, wide=True),
    Column("expires_ms", "EXPIRES", is_time=True),
    Column("max_ms", "AT MOST UNTIL", is_time=True),
)
HMAC_COLUMN: Final = Column("hmac", "HMAC", is_optional=True)
RESULT_COLUMN: Final = Column("result", "RESULT")
CREATE_COLUMNS: Final = (
    Column("token_id", "TOKEN", is_name=True, kind="string?"),
    Column("owner", "OWNER", kind="string?"),
    Column("renewers", "RENEWERS", kind="string[]"),
    Column("expires_ms", "EXPIRES", is_time=True, kind="integer?"),
    Column("max_ms", "AT MOST UNTIL", is_time=True, kind="integer?"),
    RESULT_COLUMN,
)
CHANGE_COLUMNS: Final = (
    Column("token_id", "TOKEN", is_name=True),
    Column("owner", "OWNER"),
    Column("expires_ms", "EXPIRES", is_time=True),
    RESULT_COLUMN,
)
#: A lifetime or renewal period of the broker's default; an expiry at once.
_UNSET_MS: Final = -1
_LIFETIME_MIN: Final = 1000
_SCRAM: Final = "SCRAM-SHA-256"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class NoSuchToken(EngineError):
    """None of the tokens visible to the client has this id."""

    hint = "`kctl tokens list` shows those that you see"

    def __init__(self, token_id: str) -> None:
        super().__init__(f"no token {token_id}")
        self.token_id = token_id


class MechanismWithoutFile(EngineError):
    """--mechanism is given without --out."""

    exit_code = exits.USAGE
    hint = "brokers take a token by each mechanism of SCRAM that they have"

    def __init__(self, mechanism: ScramMechanism) -> None:
        super().__init__("--mechanism goes with --out FILE: it is that of the file's login")
        self.mechanism = mechanism


class TokenRequest(NamedTuple):
    """The options of `kctl tokens create`."""

    owner: str | None
    renewers: Sequence[str]
    max_lifetime: str | None
    out: str | None
    dry_run: bool
    output: str
    mechanism: str | None = None


def list_tokens(
    options: ClusterOptions, owners: Sequence[str], *, show_hmac: bool, output: str
) -> int:
    """Print the delegation tokens of owners, all if none is named; returns the exit code.

    They are sorted by time of issue. `show_hmac` adds the HMAC, which is the token's password.
    """
    check_format(output)
    principals = [_principal(owner) for owner in owners]
    with connect(options) as client:
        tokens = describe_tokens(client, principals or None)
    columns: tuple[Column, ...] = (*LIST_COLUMNS, HMAC_COLUMN) if show_hmac else LIST_COLUMNS
    tokens.sort(key=lambda token: (token.issued_ms, token.token_id))
    rows = [_token_row(token) for token in tokens]
    if show_hmac:
        rows = [{**row, "hmac": _hmac_text(token)} for row, token in zip(rows, tokens, strict=True)]
    return end_with(columns, rows, output)


def create_delegation_token(options: ClusterOptions, request: TokenRequest) -> int:
    """Create a delegation token and print it, or write client properties with it.

    Returns the exit code. The HMAC is shown once, here, or written to --out.
    """
    check_format(request.output)
    owner = None if request.owner is None else _principal(request.owner)
    renewers = [_principal(renewer) for renewer in request.renewers]
    lifetime_ms = _UNSET_MS
    if request.max_lifetime is not None:
        # Brokers treat 0 as the maximum lifetime.
        lifetime_ms = parse_duration_ms(
            request.max_lifetime, "--max-lifetime", lowest_ms=_LIFETIME_MIN
        )
    if request.out is None and request.output == "name" and not request.dry_run:
        rule = "another format, or --out FILE: nobody would see the HMAC"
        raise UnreadableArgument("an output", request.output, rule)
    mechanism = parse_mechanism(request.mechanism)
    if mechanism is not None and request.out is None:
        raise MechanismWithoutFile(mechanism)
    columns: tuple[Column, ...] = CREATE_COLUMNS
    with connect(options) as client:
        if request.dry_run:
            # Check that tokens are enabled, and that this connection may request one.
            describe_tokens(client, [])
            row: OutputRow = {
                "token_id": None,
                "owner": None if owner is None else principal_text(*owner),
                "renewers": [principal_text(*renewer) for renewer in renewers],
                "expires_ms": None,
                "max_ms": None,
                "result": "would be created",
            }
            return end_with(columns, [row], request.output)
        make = partial(create_token, client, renewers, owner, lifetime_ms)
        if request.out is None:
            token = make()
            columns = (*columns, HMAC_COLUMN)
        else:
            token = _create_into_file(client, request.out, make, mechanism)
        row = {**_token_row(token), "result": "created", "hmac": _hmac_text(token)}
    shown = {column.key: row[column.key] for column in columns}
    return end_with(columns, [shown], request.output)


def renew_delegation_token(
    options: ClusterOptions, token_id: str, duration: str | None, *, dry_run: bool, output: str
) -> int:
    """Renew a delegation token and print its new expiry; returns the exit code.

    `duration` None is the broker's default.
    """
    check_format(output)
    period_ms = _UNSET_MS if duration is None else parse_duration_ms(duration, "--for")
    with connect(options) as client:
        token = _token(client, token_id)
        if dry_run:
            return _print_changed_token(token, token.expires_ms, "would be renewed", output)
        return _print_changed_token(
            token, renew_token(client, token.hmac, period_ms), "renewed", output
        )


def expire_delegation_token(
    options: ClusterOptions,
    token_id: str,
    duration: str | None,
    *,
    dry_run: bool,
    yes: bool,
    output: str,
) -> int:
    """Expire a delegation token after confirmation, and print when; returns the exit code.

    `duration` None expires it at once.
    """
    check_format(output)
    period_ms = _UNSET_MS if duration is None else parse_duration_ms(duration, "--after")
    with connect(options) as client:
        token = _token(client, token_id)
        if dry_run:
            return _print_changed_token(token, token.expires_ms, "would expire", output)
        owner = principal_text(*token.owner)
        confirm(f"Expire the token {token_id} of {owner} on {cluster_named(client)}", yes=yes)
        expires_ms = expire_token(client, token.hmac, period_ms)
    return _print_changed_token(
        token, expires_ms, "removed" if duration is None else "expires", output
    )


def _print_changed_token(token: IssuedToken, expires_ms: int, result: str, output: str) -> int:
    """Print the row of a changed token; returns the exit code."""
    row: OutputRow = {
        "token_id": token.token_id,
        "owner": principal_text(*token.owner),
        "expires_ms": expires_ms,
        "result": result,
    }
    return end_with(CHANGE_COLUMNS, [row], output)


def _token(client: KafkaClient, token_id: str) -> IssuedToken:
    """Return the token with this id among those the user may see; raises NoSuchToken, ApiError."""
    for token in describe_tokens(client, None):
        if token.token_id == token_id:
            return token
    raise NoSuchToken(token_id)


def _create_into_file(
    client: KafkaClient,
    path: str,
    make: Callable[[], IssuedToken],
    mechanism: ScramMechanism | None,
) -> IssuedToken:
    """Create a token, and a file of client properties for it; return the token.

    The file is created first: if writing it failed afterwards, the token might not be revocable at
    once, since a KRaft controller and the other brokers learn of it with a delay.
    """
    token, is_requested = None, False
    try:
        with open_new_file(path) as file:
            # Connect first: if that fails, certainly no token was created.
            client.view([])
            is_requested = True
            token = make()
            file.write(client_properties(token, client.settings, mechanism))
    except BaseException as error:
        # Also for Ctrl-C, since the token is shown nowhere else.
        if token is not None:
            notify(f"the token is there all the same: kctl tokens expire {token.token_id}")
        elif is_requested and not _is_refusal(error):
            notify("a token may be there all the same: `kctl tokens list` shows it")
        raise
    notify(f"a client with --command-config {path} is {principal_text(*token.owner)}")
    return token


def _is_refusal(error: BaseException) -> bool:
    """Return True if the error proves that the broker created no token.

    Otherwise a token may exist whose HMAC nobody has.
    """
    if isinstance(error, ApiError):
        return error.code != REQUEST_TIMED_OUT
    return isinstance(error, NoCommonVersion)


def client_properties(
    token: IssuedToken, settings: ClientSettings, wanted: ScramMechanism | None = None
) -> bytes:
    """Return client properties that log in by `token`, with the TLS trust of `settings`.

    The mechanism is `wanted`, else that of `settings` if it is SCRAM, else SCRAM-SHA-256.
    """
    protocol = "SASL_PLAINTEXT" if settings.tls is None else "SASL_SSL"
    sasl = settings.sasl
    mechanism = sasl.mechanism if sasl and sasl.mechanism.startswith("SCRAM") else _SCRAM
    if wanted is not None:
        mechanism = wanted.key
    properties = {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{_SCRAM_MODULE} required username="{token.token_id}" '
        f'password="{_hmac_text(token)}" tokenauth="true";',
    }
    if settings.tls is not None:
        properties |= _trust_properties(settings.tls)
    return encode_settings(properties)


def _trust_properties(tls: TlsSettings) -> dict[str, str]:
    """Return the truststore properties for these TLS settings."""
    properties = {}
    if tls.ca_path is not None:
        if tls.ca_password is None and _is_pem(tls.ca_path):
            properties["ssl.truststore.type"] = "PEM"
        properties["ssl.truststore.location"] = tls.ca_path
    elif tls.ca_pem is not None:
        properties["ssl.truststore.type"] = "PEM"
        properties["ssl.truststore.certificates"] = tls.ca_pem
    if tls.ca_password is not None:
        properties["ssl.truststore.password"] = tls.ca_password
    if not tls.verifies_host:
        properties["ssl.endpoint.identification.algorithm"] = ""
    return properties


def _is_pem(path: str) -> bool:
    """Return True if a truststore is PEM: Java clients need its type as a property."""
    try:
        return not is_java_store(read_store_file(path))
    except BadTlsFile:
        return False


def _principal(text: str) -> Principal:
    """Parse a principal, of type User if it names none; raises UnreadableArgument."""
    kind, name = principal_parts(text) if ":" in text else (USER_TYPE, text)
    if not kind or not name or not is_utf8(text):
        raise UnreadableArgument("a user", text, "a name of UTF-8, with or without User:")
    return kind, name


def _token_row(token: IssuedToken) -> OutputRow:
    """Return the row of a token; times are ms since 1970."""
    return {
        "token_id": token.token_id,
        "owner": principal_text(*token.owner),
        "requester": principal_text(*token.requester),
        "renewers": [principal_text(*renewer) for renewer in token.renewers],
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "max_ms": token.max_ms,
    }


def _hmac_text(token: IssuedToken) -> str:
    """Return the HMAC of a token in base64, as SASL/SCRAM uses it for a password."""
    return b64encode(token.hmac).decode()
