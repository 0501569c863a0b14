"""kafka-delegation-tokens. The expectations were printed by the tools of 3.9.1 and 4.3.0."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any

import pytest

from engine.client.errors import AuthenticationFailed, MechanismNotOffered, SaslNotExpected
from engine.host.memory import MemoryFiles
from engine.wire import messages
from kctl.compat.java_admin import admin_call
from kctl.compat.java_base64 import decoded
from kctl.compat.java_failures import ToolFailure, as_java, as_tool_failure, java_text
from kctl.compat.java_options import parse_options
from kctl.compat.releases import Release
from kctl.compat.tokens_tool import options
from kctl.compat.tools import run_tool
from tests.unit.client.fake_broker import FakeCluster

_HMAC = bytes(range(64))
_TEXT = b64encode(_HMAC).decode()
_HEAD = (
    "TOKENID         HMAC                           OWNER           REQUESTER       "
    "RENEWERS                  ISSUEDATE       EXPIRYDATE      MAXDATE        "
)
_ROW = (
    f"id-1            {_TEXT} User:alice      User:alice      "
    "[User:bob]                1970-01-01T00:00 1970-01-01T00:01 1970-01-01T00:02"
)


class Tokens(FakeCluster):
    """A cluster with some tokens of alice, which bob may renew."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.changed: list[bytes] = []
        self.handlers |= {
            "CreateDelegationToken": self._create,
            "RenewDelegationToken": self._change,
            "ExpireDelegationToken": self._change,
            "DescribeDelegationToken": self._describe,
        }

    def _create(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        return messages.CreateDelegationTokenResponse(
            error_code=0,
            principal_type="User",
            principal_name="alice",
            token_id="id-1",
            hmac=_HMAC,
            issue_timestamp_ms=0,
            expiry_timestamp_ms=60_000,
            max_timestamp_ms=120_000,
        )

    def _change(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        self.changed.append(bytes(request.hmac))
        is_renewal = isinstance(request, messages.RenewDelegationTokenRequest)
        response = (
            messages.RenewDelegationTokenResponse
            if is_renewal
            else messages.ExpireDelegationTokenResponse
        )
        return response(error_code=0, expiry_timestamp_ms=60_000)

    def _describe(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.DescribeDelegationTokenResponse
        token = response.DescribedDelegationToken
        renewer = response.DescribedDelegationTokenRenewer(
            principal_type="User", principal_name="bob"
        )
        row = token(
            principal_type="User",
            principal_name="alice",
            token_id="id-1",
            hmac=_HMAC,
            issue_timestamp=0,
            expiry_timestamp=60_000,
            max_timestamp=120_000,
            renewers=[renewer],
        )
        return response(error_code=0, tokens=[row] * self.count)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)


def _run(cluster: FakeCluster, *words: str) -> int:
    files = MemoryFiles()
    files.replace_file("/p", b"")
    given = ["--bootstrap-server", "b:1", "--command-config", "/p", *words]
    return run_tool(
        "kafka-delegation-tokens", given, connecting=lambda _options: cluster.client(), files=files
    )


def test_a_created_token_has_an_empty_line_above_its_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    assert not _run(Tokens(0), *words)
    assert capsys.readouterr().out == (
        "Calling create token operation with renewers :[User:bob] , max-life-time-period :-1\n"
        f"Created delegation token with tokenId : id-1\n\n{_HEAD}\n\n{_ROW}\n"
    )


@pytest.mark.parametrize("count", [0, 1, 2])
def test_each_token_has_an_empty_line_above_it(
    capsys: pytest.CaptureFixture[str], count: int
) -> None:
    assert not _run(Tokens(count), "--describe", "--owner-principal", "User:alice")
    assert capsys.readouterr().out == (
        "Calling describe token operation for owners: [User:alice]\n"
        f"Total number of tokens : {count}\n{_HEAD}\n" + f"\n{_ROW}\n" * count
    )


@pytest.mark.parametrize(
    ("words", "period"),
    [
        ("--renew --renew-time-period -1", "renew-time-period"),
        ("--expire --expiry-time-period -1", "expire-time-period"),
    ],
)
def test_a_changed_token_ends_its_line_with_the_time(
    capsys: pytest.CaptureFixture[str], words: str, period: str
) -> None:
    cluster, action = Tokens(0), words.split(maxsplit=1)[0].removeprefix("--")
    # Java's decoder needs no padding.
    assert not _run(cluster, *words.split(), "--hmac", _TEXT.rstrip("="))
    assert capsys.readouterr().out == (
        f"Calling {action} token operation with hmac :{_TEXT.rstrip('=')} , {period} :-1\n"
        f"Completed {action} operation. New expiry date : 1970-01-01T00:01"
    )
    assert [_HMAC] == cluster.changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!!", "Illegal base64 character 21"),
        ("a-b_", "Illegal base64 character 2d"),
        ("a", "Input byte[] should at least have 2 bytes for base64 bytes"),
        ("abcde", "Last unit does not have enough valid bits"),
    ],
)
def test_what_is_no_base64_is_refused_in_the_words_of_java(text: str, message: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        decoded(text)
    assert message == str(caught.value)


@pytest.mark.parametrize(("word", "period"), [("x", None), ("-1", "-1"), ("5", "5")])
def test_a_word_that_is_no_number_is_no_value_of_an_optional_number(
    word: str, period: str | None
) -> None:
    given = parse_options(options(Release.V3_9), ["--create", "--max-life-time-period", word])
    assert period == given.text("max-life-time-period")
    assert (period is None) == (word in given.arguments)


@pytest.mark.parametrize(
    ("error", "java"),
    [
        (
            AuthenticationFailed("PLAIN", "Authentication failed: Invalid username or password"),
            "SaslAuthenticationException: Authentication failed: Invalid username or password",
        ),
        (
            MechanismNotOffered("SCRAM-SHA-512", ["PLAIN", "SCRAM-SHA-256"]),
            "UnsupportedSaslMechanismException: Client SASL mechanism 'SCRAM-SHA-512' not enabled "
            "in the server, enabled mechanisms are [PLAIN, SCRAM-SHA-256]",
        ),
        (
            SaslNotExpected("PLAIN"),
            "IllegalSaslStateException: Unexpected handshake request with client mechanism PLAIN, "
            "enabled mechanisms are []",
        ),
    ],
)
def test_a_refused_login_is_an_exception_of_its_own(error: AuthenticationFailed, java: str) -> None:
    text = f"org.apache.kafka.common.errors.{java}"
    assert text == java_text(error)
    assert text == as_java(error).trace().strip()
    assert text == str(as_tool_failure(error))
    with pytest.raises(ToolFailure) as caught, admin_call("listTopics"):
        raise error
    assert text == caught.value.trace().strip()


def test_groups_are_not_listed_where_a_login_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(request: Any, version: int, address: tuple[str, int]) -> Any:
        raise AuthenticationFailed("PLAIN", "Invalid username or password")

    cluster = FakeCluster()
    cluster.handlers["Metadata"] = refuse
    words = ["--bootstrap-server", "b:1", "--list"]
    run_tool("kafka-consumer-groups", words, connecting=lambda _options: cluster.client())
    assert capsys.readouterr().out == (
        "\nError: Executing consumer group command failed due to "
        "java.util.concurrent.ExecutionException: org.apache.kafka.common.KafkaException: "
        "Failed to find brokers to send ListGroups\n"
    )
