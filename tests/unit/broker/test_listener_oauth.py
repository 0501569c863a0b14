"""A listener with OAUTHBEARER: whose tokens it believes, and where it gets the keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.broker.jwks import JwksCache
from engine.client.errors import AuthenticationFailed, ClientSettingRefused
from engine.client.oauth_login import OAuthLogin, request_access_token
from engine.client.sasl import OAuthConversation
from engine.client.settings import client_settings
from engine.errors import ConfigError
from engine.host.http import HttpResponse
from engine.host.memory import ManualClock, MemoryFiles
from engine.host.real import RealClock
from engine.host.real_http import RealHttp
from engine.security.oauth_tokens import UnsecuredRules, validate_unsecured_token
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.security.test_oauth_tokens import keys, signed, unsecured

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
SIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
PREFIX = "listener.name.sasl"
URL = "sasl.oauthbearer.jwks.endpoint.url"


def stage_of(**more: str) -> MemoryBroker:
    stage = MemoryBroker(
        listeners="PLAINTEXT://here:0,SASL://here:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        inter_broker_listener_name="PLAINTEXT",
        sasl_enabled_mechanisms="OAUTHBEARER",
        **more,
    )
    stage.set(f"{PREFIX}.oauthbearer.sasl.jaas.config", MODULE)
    return stage


def with_keys(stage: MemoryBroker) -> MemoryBroker:
    stage.files.replace_file("/jwks.json", json.dumps({"keys": keys()}).encode())
    stage.set(f"{PREFIX}.oauthbearer.sasl.server.callback.handler.class", SIGNED)
    stage.set(f"{PREFIX}.{URL}", "file:///jwks.json")
    stage.set(f"{PREFIX}.sasl.oauthbearer.expected.audience", "kafka")
    return stage


def user_of(stage: MemoryBroker, token: str) -> str | None:
    server = stage.broker.listeners._authentications["SASL"].listener.new_server("OAUTHBEARER")
    server.response_to(OAuthConversation(token).first())
    return server.user


def test_signed_tokens_are_believed_and_others_are_not() -> None:
    stage = with_keys(stage_of()).start()
    assert "alice" == user_of(stage, signed())
    assert user_of(stage, signed(by=1)) is None
    assert user_of(stage, unsecured()) is None
    stage.stop()


def test_without_a_class_unsecured_tokens_are_believed() -> None:
    stage = stage_of().start()
    assert "alice" == user_of(stage, unsecured())
    assert user_of(stage, signed()) is None
    stage.stop()


def test_keys_that_nothing_would_read_stop_the_start() -> None:
    stage = stage_of()
    stage.set(f"{PREFIX}.{URL}", "file:///jwks.json")
    with pytest.raises(ConfigError, match="counts only with"):
        stage.start()


def test_keys_that_are_not_there_stop_the_start() -> None:
    stage = with_keys(stage_of())
    stage.set(f"{PREFIX}.{URL}", "file:///nosuch.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        stage.start()


@pytest.mark.parametrize("handler", ["my.Handler", SIGNED])
def test_other_classes_and_a_class_without_keys_stop_the_start(handler: str) -> None:
    stage = stage_of()
    stage.set(f"{PREFIX}.oauthbearer.sasl.server.callback.handler.class", handler)
    with pytest.raises(ConfigError):
        stage.start()


class Web:
    """A server whose document changes."""

    def __init__(self) -> None:
        self.response = HttpResponse(200, b'{"keys":[{"kid":"a"}]}')

    def get(self, _url: str, _headers: Mapping[str, str], _timeout_s: float) -> HttpResponse:
        return self.response


def test_keys_are_read_again_for_one_that_is_not_there() -> None:
    web, clock = Web(), ManualClock()
    cache = JwksCache(MemoryFiles(clock=clock), web, clock)
    found = cache.of("https://issuer/keys", 1000)
    found.offload = lambda work, done: (work(), done())[0]  # type: ignore[func-returns-value]
    token = signed()
    web.response = HttpResponse(200, b'{"keys":[{"kid":"e1"}]}')
    assert ["a"] == [one["kid"] for one in found.for_token(token)]
    clock.advance(10_000)
    assert ["e1"] == [one["kid"] for one in found.for_token(token)]
    web.response = HttpResponse(500, b"")
    found.refresh()
    assert ["e1"] == [one["kid"] for one in found.for_token(token)]
    assert found is cache.of("https://issuer/keys", 1000)


# -- The client --------------------------------------------------------------------------------


def settings(jaas: str = MODULE, **more: str) -> Any:
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    named = {name.replace("_", "."): text for name, text in more.items()}
    return client_settings({**properties, "sasl.jaas.config": jaas, **named}).sasl


def test_a_client_gets_its_token_from_a_file(tmp_path: Any) -> None:
    (tmp_path / "token").write_text(f"{signed()}\n")
    sasl = settings(sasl_oauthbearer_token_endpoint_url=f"file://{tmp_path}/token")
    assert request_access_token(sasl.oauth) == (tmp_path / "token").read_text().strip()


def test_a_client_logs_in_at_an_endpoint_with_an_id_and_a_secret() -> None:
    jaas = MODULE.replace(";", ' clientId="c" clientSecret="s" scope="a b";')
    sasl = settings(jaas, sasl_oauthbearer_token_endpoint_url="https://issuer/token")
    assert OAuthLogin("https://issuer/token", "c", "s", "a b") == sasl.oauth
    assert "s" not in repr(sasl.oauth).replace("https://issuer/token", "").removeprefix(
        "OAuthLogin"
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"sasl_oauthbearer_token_endpoint_url": "https://issuer/token"},
        {"sasl_oauthbearer_token_endpoint_url": "ftp://x"},
        {"sasl_login_callback_handler_class": "my.Handler"},
    ],
)
def test_a_client_without_a_way_to_a_token_is_refused(more: dict[str, str]) -> None:

    with pytest.raises(ClientSettingRefused):
        settings(**more)


def test_a_client_makes_an_unsecured_token() -> None:
    sasl = settings(MODULE.replace(";", ' unsecuredLoginStringClaim_sub="bob";'))
    now_ms = RealClock().wall_ms()
    token = validate_unsecured_token(request_access_token(sasl.oauth), UnsecuredRules(), now_ms)
    assert "bob" == token.principal
    assert 3_500_000 < token.expires_ms - now_ms <= 3_600_000


def test_a_token_endpoint_gives_a_token_for_an_id_and_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[Any] = []
    responses = [
        HttpResponse(200, b'{"access_token":"tok"}'),
        HttpResponse(200, b"{}"),
        HttpResponse(200, b"[" * 100_000),
        HttpResponse(401, b""),
    ]

    def post(_http: RealHttp, *request: Any) -> HttpResponse:
        requested.append(request)
        return responses.pop(0)

    monkeypatch.setattr(RealHttp, "post", post)
    login = OAuthLogin("https://issuer/token", "c", "s", "a b")
    assert "tok" == request_access_token(login)
    url, headers, body, _timeout_s = requested[0]
    assert ("https://issuer/token", "Basic Yzpz") == (url, headers["Authorization"])
    assert b"grant_type=client_credentials&scope=a+b" == body
    for words in ("without an access_token", "without an access_token", "status 401"):
        with pytest.raises(AuthenticationFailed, match=words):
            request_access_token(login)
