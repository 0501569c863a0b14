"""`kafka-delegation-tokens`: creates, renews, expires and shows delegation tokens.

Without `--owner-principal`, `--describe` shows no token, like Java's: its list of owners is empty.

Source: DelegationTokenCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.client.token_admin import (
    IssuedToken,
    Principal,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from engine.errors import EngineError
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_base64 import decoded
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    ToolOption,
    exclude,
    refused,
    require,
)
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Shows and changes delegation tokens."
_OPTIONS: Final = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties. Required.", "FILE"),
    ToolOption("create", "Create a token."),
    ToolOption("renew", "Renew a token."),
    ToolOption("expire", "Have a token expire."),
    ToolOption("describe", "Show tokens."),
    ToolOption("owner-principal", "Whose token.", "TYPE:NAME", True),
    ToolOption("renewer-principal", "Who may renew it.", "TYPE:NAME", True),
    ToolOption("max-life-time-period", "Create: ms; -1 is the broker's default.", "MS", True, True),
    ToolOption("renew-time-period", "Renew: ms; -1 is the broker's default.", "MS", True, True),
    ToolOption("expiry-time-period", "Expire: ms; -1 is now.", "MS", True, True),
    ToolOption("hmac", "Which token.", "BASE64", True),
    HELP,
    VERSION,
)
_ACTIONS: Final = ("create", "renew", "expire", "describe")
_HEADS: Final = (
    "TOKENID",
    "HMAC",
    "OWNER",
    "REQUESTER",
    "RENEWERS",
    "ISSUEDATE",
    "EXPIRYDATE",
    "MAXDATE",
)
_ROW: Final = "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
_EXECUTION: Final = "java.util.concurrent.ExecutionException"
_NO_NUMBER: Final = (
    'Cannot invoke "java.lang.Long.longValue()" because the return value of '
    '"joptsimple.OptionSet.valueOf(joptsimple.OptionSpec)" is null'
)
_UNSUPPORTED: Final = "org.apache.kafka.common.errors.UnsupportedVersionException"


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-delegation-tokens, the same in each release."""
    del release
    return _OPTIONS


def run(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-delegation-tokens: create, renew, expire or print tokens; returns the exit code."""
    _check_options(given)
    servers = given.needed("bootstrap-server")
    call.admit(given.names(), servers)
    action = next(name for name in _ACTIONS if given.has(name))
    try:
        properties = call.properties(given.text("command-config"))
        with call.client(servers, properties) as client:
            _perform_action(call, client, given, action)
    except ToolFailure as failure:
        call.flush()
        call.err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    return exits.OK


def _check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused for contradictory or missing options of kafka-delegation-tokens."""
    require(given, "bootstrap-server", "command-config")
    if [given.has(name) for name in _ACTIONS].count(True) != 1:
        raise refused(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    needed = {
        "create": ("max-life-time-period",),
        "renew": ("hmac", "renew-time-period"),
        "expire": ("hmac", "expiry-time-period"),
    }
    others = {
        "create": ("hmac", "renew-time-period", "expiry-time-period"),
        "renew": (
            "renewer-principal",
            "max-life-time-period",
            "expiry-time-period",
            "owner-principal",
        ),
        "expire": (
            "renewer-principal",
            "max-life-time-period",
            "renew-time-period",
            "owner-principal",
        ),
        "describe": (
            "renewer-principal",
            "max-life-time-period",
            "hmac",
            "renew-time-period",
            "expiry-time-period",
        ),
    }
    for action in _ACTIONS:
        if given.has(action):
            require(given, *needed.get(action, ()))
            exclude(given, action, others[action])


def _perform_action(call: ToolCall, client: KafkaClient, given: GivenOptions, action: str) -> None:
    """Create, renew, expire or print delegation tokens; raises ToolFailure."""
    try:
        if action == "create":
            _create_token(call, client, given)
        elif action == "describe":
            _print_owned_tokens(call, client, given)
        else:
            _change_expiry(call, client, given, action)
    except NoCommonVersion as error:
        names = {
            "create": "CREATE_DELEGATION_TOKEN",
            "renew": "RENEW_DELEGATION_TOKEN",
            "expire": "EXPIRE_DELEGATION_TOKEN",
            "describe": "DESCRIBE_DELEGATION_TOKEN",
        }
        text = f"{_UNSUPPORTED}: The node does not support {names[action]}"
        raise ToolFailure(_EXECUTION, text, text) from error
    except ToolFailure:
        raise
    except EngineError as error:
        failure = as_java(error)
        text = f"{failure.java_class}: {failure}"
        raise ToolFailure(_EXECUTION, text, text) from error


def _parse_principals(given: GivenOptions, option: str) -> list[Principal]:
    """Return the principals of an option as (type, name); raises ToolFailure without a colon."""
    found = []
    for text in given.texts(option):
        kind, colon, name = text.strip().partition(":")
        if not colon:
            raise ToolFailure(
                ILLEGAL_ARGUMENT,
                f"expected a string in format principalType:principalName but got {text.strip()}",
            )
        found.append((kind, name))
    return found


def _needed_number(given: GivenOptions, name: str) -> int:
    """Return an option's integer; raises ToolFailure (NullPointerException) without a value."""
    if given.text(name) is None:
        raise ToolFailure("java.lang.NullPointerException", _NO_NUMBER)
    return given.number(name, 0)


def _create_token(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Create a delegation token and print it."""
    renewers = _parse_principals(given, "renewer-principal")
    max_ms = _needed_number(given, "max-life-time-period")
    named = ", ".join(map(_principal_text, renewers))
    call.out.write(
        f"Calling create token operation with renewers :[{named}] , "
        f"max-life-time-period :{max_ms}\n"
    )
    call.flush()
    owners = _parse_principals(given, "owner-principal")
    token = create_token(client, renewers, owners[0] if owners else None, max_ms)
    call.out.write(f"Created delegation token with tokenId : {token.token_id}\n")
    _print_tokens(call, [token])


def _change_expiry(call: ToolCall, client: KafkaClient, given: GivenOptions, action: str) -> None:
    """Renew or expire a token by its HMAC, and print the new expiry time."""
    hmac = given.needed("hmac")
    option, word = (
        ("renew-time-period", "renew-time-period")
        if action == "renew"
        else ("expiry-time-period", "expire-time-period")
    )
    period_ms = _needed_number(given, option)
    call.out.write(f"Calling {action} token operation with hmac :{hmac} , {word} :{period_ms}\n")
    call.flush()
    change = renew_token if action == "renew" else expire_token
    expires_ms = change(client, decoded(hmac), period_ms)
    # As in Java, the line has no line end.
    call.out.write(f"Completed {action} operation. New expiry date : {_date_text(expires_ms)}")


def _print_owned_tokens(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Print the delegation tokens of the owners that options name."""
    owners = _parse_principals(given, "owner-principal")
    if owners:
        named = ", ".join(map(_principal_text, owners))
        call.out.write(f"Calling describe token operation for owners: [{named}]\n")
    else:
        call.out.write("Calling describe token operation for current user.\n")
    call.flush()
    # As in Java, without an owner an empty list is sent, which matches no token.
    tokens = describe_tokens(client, owners)
    call.out.write(f"Total number of tokens : {len(tokens)}")
    _print_tokens(call, tokens)


def _print_tokens(call: ToolCall, tokens: Sequence[IssuedToken]) -> None:
    """Print a table of delegation tokens, with HMACs in Base64."""
    call.out.write("\n" + _ROW.format(*_HEADS) + "\n")
    for token in tokens:
        row = _ROW.format(
            token.token_id,
            b64encode(token.hmac).decode(),
            _principal_text(token.owner),
            _principal_text(token.requester),
            f"[{', '.join(map(_principal_text, token.renewers))}]",
            _date_text(token.issued_ms),
            _date_text(token.expires_ms),
            _date_text(token.max_ms),
        )
        call.out.write(f"\n{row}\n")


def _principal_text(principal: Principal) -> str:
    """Return a principal as `TYPE:NAME`."""
    return f"{principal[0]}:{principal[1]}"


def _date_text(time_ms: int) -> str:
    """Return a time in ms since 1970 as local time in the tool's format, with minutes."""
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(time_ms / 1000))
