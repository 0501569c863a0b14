"""`kctl tokens`: what a client that logs in by a token is told."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine.client.errors import NoCommonVersion, Unreachable
from engine.client.sasl import SaslSettings
from engine.client.settings import ClientSettings, client_settings
from engine.client.token_admin import IssuedToken
from engine.config.java_properties import parse_properties
from engine.errors import ApiError, StorageError
from engine.host.ports import FileRefused
from engine.host.streams import TlsSettings
from engine.kafka_errors import DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, REQUEST_TIMED_OUT
from engine.security.scram import ScramMechanism
from engine.wire import messages
from kctl.arguments import UnreadableArgument
from kctl.commands.tokens import changes
from kctl.commands.tokens.changes import (
    MechanismWithoutFile,
    TokenRequest,
    client_properties,
    create_delegation_token,
)
from kctl.connect import ClusterOptions
from tests.unit.client.fake_broker import FakeCluster

TOKEN = IssuedToken("id-1", b"\xff\x00", ("User", "a"), ("User", "a"), (), 1, 2, 3)


def _parsed(settings: ClientSettings) -> dict[str, str]:
    return parse_properties(client_properties(TOKEN, settings), "x")


def test_properties_log_in_by_the_token() -> None:
    settings = client_settings(_parsed(ClientSettings()))
    assert SaslSettings("SCRAM-SHA-256", "id-1", "/wA=", is_token=True) == settings.sasl
    assert settings.tls is None


def test_properties_are_of_the_same_mechanism_and_trust_the_same() -> None:
    other = ClientSettings(
        tls=TlsSettings(ca_path="/ca.pem", ca_password="p", verifies_host=False),
        sasl=SaslSettings("SCRAM-SHA-512", "a", "b"),
    )
    settings = client_settings(_parsed(other))
    assert settings.sasl is not None
    assert settings.tls is not None
    assert "SCRAM-SHA-512" == settings.sasl.mechanism
    assert other.tls == settings.tls


def test_another_mechanism_is_that_of_brokers_without_the_first() -> None:
    """Who logs in by PLAIN or a certificate cannot show which of the two brokers have."""
    for login in (None, SaslSettings("PLAIN", "a", "b"), SaslSettings("SCRAM-SHA-256", "a", "b")):
        text = client_properties(TOKEN, ClientSettings(sasl=login), ScramMechanism.SCRAM_SHA_512)
        assert "SCRAM-SHA-512" == parse_properties(text, "x")["sasl.mechanism"]


_STORES = Path(__file__).parents[1] / "host" / "tls" / "stores"


def test_properties_name_the_type_of_a_trust_store_for_clients_of_java() -> None:
    """Without it a store is JKS to them, which PKCS12 may be and PEM may not."""
    types = {}
    for name in ("ca.pem", "trust.jks", "trust.p12"):
        parsed = _parsed(ClientSettings(tls=TlsSettings(ca_path=str(_STORES / name))))
        types[name] = parsed.get("ssl.truststore.type")
    assert {"ca.pem": "PEM", "trust.jks": None, "trust.p12": None} == types


def test_trusted_certificates_of_the_settings_are_those_of_the_token_too() -> None:
    pem = (_STORES / "ca.pem").read_text()
    parsed = _parsed(ClientSettings(tls=TlsSettings(ca_pem=pem)))
    assert ("PEM", pem) == (parsed["ssl.truststore.type"], parsed["ssl.truststore.certificates"])
    settings = client_settings(parsed)
    assert settings.tls is not None
    assert pem == settings.tls.ca_pem


@pytest.mark.parametrize(
    "text", ["pa\\ss", " led", "end ", "jürgen", "a\tb", "a=b:c#d!", "\U0001f600"]
)
def test_properties_have_any_path_and_password(text: str) -> None:
    """Java reads a backslash as an escape, leading space as none, and bytes as Latin-1."""
    tls = TlsSettings(ca_path=f"/{text}/ca.p12", ca_password=text)
    parsed = _parsed(ClientSettings(tls=tls))
    assert f"/{text}/ca.p12" == parsed["ssl.truststore.location"]
    assert text == parsed["ssl.truststore.password"]


class Tokens(FakeCluster):
    """A cluster that makes tokens, or answers `error`."""

    def __init__(self) -> None:
        super().__init__()
        self.error = 0
        self.handlers["CreateDelegationToken"] = self._create

    def _create(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        return messages.CreateDelegationTokenResponse(
            error_code=self.error,
            principal_type="User",
            principal_name="a",
            token_id="id-1",
            hmac=b"\xff\x00",
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Tokens:
    cluster = Tokens()
    monkeypatch.setattr(changes, "connect", lambda options: cluster.client())
    return cluster


def _create(path: Path, lifetime: str | None = None) -> int:
    request = TokenRequest(
        None, [], lifetime, str(path), dry_run=False, output="csv", mechanism="sha-512"
    )
    return create_delegation_token(ClusterOptions(), request)


def test_no_token_is_made_where_its_file_cannot_be(cluster: Tokens, tmp_path: Path) -> None:
    """To end one that was just made is refused by KRaft, which does not know it yet."""
    path = tmp_path / "job.properties"
    path.write_text("kept")
    with pytest.raises(FileRefused):
        _create(path)
    assert ("kept", []) == (path.read_text(), cluster.requested_apis())


def test_a_file_is_made_with_its_token_and_not_without(cluster: Tokens, tmp_path: Path) -> None:
    path = tmp_path / "job.properties"
    cluster.error = DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with pytest.raises(ApiError):
        _create(path)
    assert [] == list(tmp_path.iterdir())
    cluster.error = 0
    assert not _create(path)
    assert "SCRAM-SHA-512" in path.read_text()
    assert (0o600, True) == (path.stat().st_mode & 0o777, 'username="id-1"' in path.read_text())


def test_a_token_whose_file_cannot_be_written_is_named(
    cluster: Tokens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left on device"):
        _create(tmp_path / "job.properties")
    assert [] == list(tmp_path.iterdir())
    assert "kctl tokens expire id-1" in capsys.readouterr().err


def test_an_interrupt_names_the_token_that_has_no_file(
    cluster: Tokens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    for name, note in (("fsync", "kctl tokens expire id-1"), ("create_token", "kctl tokens list")):
        with monkeypatch.context() as patched:
            patched.setattr(os if name == "fsync" else changes, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                _create(tmp_path / "job.properties")
        assert [] == list(tmp_path.iterdir())
        assert note in capsys.readouterr().err


def test_a_refused_token_is_said_to_be_nowhere(
    cluster: Tokens, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.error = DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with pytest.raises(ApiError):
        _create(tmp_path / "job.properties")
    assert "all the same" not in capsys.readouterr().err


def test_no_token_is_said_to_be_where_none_was_asked_for(
    cluster: Tokens, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker has no tokens, or is silent from the first request on."""
    del cluster.handlers["CreateDelegationToken"]
    with pytest.raises(NoCommonVersion):
        _create(tmp_path / "job.properties")
    cluster.handlers["ApiVersions"] = lambda *_: None
    with pytest.raises(Unreachable):
        _create(tmp_path / "job.properties")
    assert [] == list(tmp_path.iterdir())
    assert "all the same" not in capsys.readouterr().err


def test_a_token_that_is_late_may_be_there(
    cluster: Tokens, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker of KRaft passes the request on to the controller, and waits so long."""
    cluster.error = REQUEST_TIMED_OUT
    with pytest.raises(ApiError):
        _create(tmp_path / "job.properties")
    assert "kctl tokens list" in capsys.readouterr().err


def test_a_mechanism_without_a_file_is_refused() -> None:
    request = TokenRequest(None, [], None, None, dry_run=False, output="csv", mechanism="sha-512")
    with pytest.raises(MechanismWithoutFile, match="goes with --out FILE"):
        create_delegation_token(ClusterOptions(), request)


def test_a_lifetime_of_nothing_is_refused_as_brokers_would_give_their_longest(
    cluster: Tokens, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableArgument, match="1s to"):
        _create(tmp_path / "job.properties", "0s")
    assert [] == cluster.requested_apis()
