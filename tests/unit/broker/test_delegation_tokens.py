"""Delegation tokens of a broker: logins by them, other brokers' changes, restarts, their end."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from engine.admin.token_admin import TokenAdmin, TokenLifetimes
from engine.api.admission import Session, allow_all
from engine.api.delegation_tokens import DelegationTokens
from engine.api.exchange import Exchange
from engine.api.sasl_authenticator import SaslAuthenticator
from engine.broker.delegation_tokens import BrokerTokens
from engine.client.sasl import ScramConversation
from engine.host.coroutine import drive
from engine.host.memory import SeededEntropy
from engine.security.delegation_tokens import TokenCache, token_hmac
from engine.security.sasl import ScramServer
from engine.security.scram import ScramMechanism
from engine.wire import messages
from engine.znode.embedded import EmbeddedZnodeClient
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.sasl_listeners import secured_broker

SECRET = "topsecret"
DAY_MS = 86_400_000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


def tokens_of(stage: MemoryBroker) -> BrokerTokens:
    tokens = stage.broker.tokens
    assert tokens is not None
    return tokens


def started(stage: MemoryBroker | None = None, **settings: str) -> MemoryBroker:
    """Return a broker with tokens, or the next life of another broker's disk and store."""
    earlier = {} if stage is None else {"files": stage.files, "store": stage.store}
    return MemoryBroker(delegation_token_secret_key=SECRET, **earlier, **settings).start()  # type: ignore[arg-type]


def created(stage: MemoryBroker, owner: str = ALICE, **more: Any) -> Any:
    fields = {"requester": owner, "renewers": (), "max_lifetime_ms": -1, **more}
    return drive(tokens_of(stage).admin.create(owner, **fields)).result()


class Rival:
    """Another broker that changes tokens."""

    def __init__(self, stage: MemoryBroker) -> None:
        self._stage = stage
        znodes = EmbeddedZnodeClient(stage.store, 1 << 30)
        drive(znodes.connect()).result()
        self.admin = TokenAdmin(
            znodes,
            TokenCache(SECRET, lambda: b"salt"),
            TokenLifetimes(DAY_MS, 7 * DAY_MS),
            clock=stage.clock,
            entropy=SeededEntropy(3),
        )
        drive(self.admin.load()).result()

    def do(self, work: Any) -> Any:
        result = drive(work).result()
        self._stage.timers.run_until_idle()
        return result


def test_tokens_are_what_they_were_after_a_restart() -> None:
    stage = started()
    token = created(stage, BOB, requester=ALICE, renewers=[CAROL])
    stage.stop()
    again = started(stage)
    assert [token] == tokens_of(again).admin.cache.tokens
    assert (token.issued_ms + DAY_MS, token.issued_ms + 7 * DAY_MS) == token[-2:]
    again.stop()


def test_a_broker_follows_the_tokens_that_others_change() -> None:
    stage = started()
    rival = Rival(stage)
    token = rival.do(rival.admin.create(ALICE, ALICE, (), -1))
    cache = tokens_of(stage).admin.cache
    assert token == cache.of(token.token_id)
    hmac = token_hmac(SECRET, token.token_id)
    expires_ms = rival.do(rival.admin.expire(ALICE, hmac, 5000))
    kept = cache.of(token.token_id)
    assert kept is not None
    assert expires_ms == kept.expires_ms
    rival.do(rival.admin.expire(ALICE, hmac, -1))
    assert [] == cache.tokens
    stage.stop()


def test_the_controller_removes_tokens_that_have_expired() -> None:
    stage = started(delegation_token_expiry_check_interval_ms="1000")
    created(stage, max_lifetime_ms=500)
    kept = created(stage)
    stage.pass_time(900)
    assert 2 == len(tokens_of(stage).admin.cache.tokens)
    stage.pass_time(200)
    assert [kept] == tokens_of(stage).admin.cache.tokens
    stage.stop()


def test_a_new_controller_removes_at_once_what_expired_before() -> None:
    stage = started()
    created(stage, max_lifetime_ms=500)
    kept = created(stage)
    stage.stop()
    stage.clock.advance(600)
    again = MemoryBroker(
        files=stage.files,
        store=stage.store,
        delegation_token_secret_key=SECRET,
    )
    again.clock.advance(600)
    again.start()
    assert [kept] == tokens_of(again).admin.cache.tokens
    again.stop()


def test_a_node_that_cannot_be_read_is_left_out() -> None:
    stage = started()
    kept = created(stage)
    rival = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(rival.connect()).result()
    drive(rival.create("/delegation_token/tokens/x", b'{"version":9}')).result()
    drive(tokens_of(stage).admin.load()).result()
    assert [kept] == tokens_of(stage).admin.cache.tokens
    stage.stop()


def test_nodes_are_kafkas() -> None:
    stage = started()
    token = created(stage, BOB, requester=ALICE, renewers=[CAROL])
    rival = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(rival.connect()).result()
    path = f"/delegation_token/tokens/{token.token_id}"
    expected = (
        f'{{"issueTimestamp":{token.issued_ms},"renewers":["User%3Acarol"],'
        f'"tokenRequester":"User%3Aalice","tokenId":"{token.token_id}","owner":"User%3Abob",'
        f'"expiryTimestamp":{token.expires_ms},"maxTimestamp":{token.max_ms},"version":3}}'
    )
    assert expected.encode() == drive(rival.get(path)).result()[0]
    (change,) = drive(rival.children("/delegation_token/token_changes")).result()
    data, _ = drive(rival.get(f"/delegation_token/token_changes/{change}")).result()
    assert ("token_change_0000000000", token.token_id.encode()) == (change, data)
    stage.stop()


# -- Logins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_token_logs_in_as_its_owner_for_as_long_as_it_holds(mechanism: ScramMechanism) -> None:
    stage = started()
    tokens = tokens_of(stage)
    token = created(stage, BOB, requester=ALICE, max_lifetime_ms=5000)
    password = b64encode(token_hmac(SECRET, token.token_id)).decode()
    server = ScramServer(
        mechanism, lambda _user: None, "nonce", lambda token_id: tokens.login(token_id, mechanism)
    )
    client = ScramConversation(mechanism.key, token.token_id, password, b"abc", is_token=True)
    assert client.first().endswith(b",tokenauth=true")
    final = client.response_to(server.response_to(client.first()))
    assert final is not None
    assert client.response_to(server.response_to(final)) is None
    assert ("bob", True, 5000) == (server.user, server.is_token, server.lifetime_ms)
    assert tokens.login("another", mechanism) is None
    stage.stop()


@pytest.mark.parametrize(
    ("of_listener_ms", "of_token_ms", "expected"),
    [
        (0, None, None),
        (0, 70, 70),
        (50, 70, 50),
        (90, 70, 70),
        (50, None, 50),
        (0, 0, 0),
        (9, 0, 0),
    ],
)
def test_a_session_ends_with_what_its_client_has_shown(
    of_listener_ms: int, of_token_ms: int | None, expected: int | None
) -> None:
    class Listener:
        mechanisms = ("M",)

        def session_lifetime_ms(self, _mechanism: str) -> int:
            return of_listener_ms

        def new_server(self, _mechanism: str) -> Any:
            raise NotImplementedError

    class Server:
        user, is_token, lifetime_ms = "bob", True, of_token_ms

        def response_to(self, _token: bytes) -> bytes:
            return b""

    session = Session("peer", allow_all())
    authenticator = SaslAuthenticator(session, Listener(), None, lambda: 1000)  # type: ignore[arg-type]
    authenticator._server = Server()
    authenticator._respond(b"")
    assert (BOB, True) == (session.principal, session.is_by_token)
    assert expected == (
        None if authenticator.expires_ms is None else authenticator.expires_ms - 1000
    )


# -- Requests ----------------------------------------------------------------------------------


def exchange_of(
    principal: str, version: int, listener: str = "SASL_PLAINTEXT", *, by_token: bool = False
) -> Exchange:
    session = Session("1.2.3.4:5", allow_all(), listener)
    session.authenticate(principal, by_token=by_token)
    return Exchange(session, 38, version, 1, "c", 0)


def answers(api: DelegationTokens, exchange: Exchange) -> list[int]:
    create = messages.CreateDelegationTokenRequest(max_lifetime_ms=-1)
    renew = messages.RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1)
    expire = messages.ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1)
    describe = messages.DescribeDelegationTokenRequest(owners=None)
    handled: list[Any] = [
        api.create(create, exchange),
        api.renew(renew, exchange),
        api.expire(expire, exchange),
        api.describe(describe, exchange),
    ]
    return [(one.result() if hasattr(one, "result") else one).error_code for one in handled]


def test_clients_that_are_not_known_otherwise_get_nothing_of_tokens() -> None:
    api = DelegationTokens(None, lambda listener: listener)
    assert [64] * 4 == answers(api, exchange_of("User:ANONYMOUS", 2, "PLAINTEXT"))
    assert [64] * 4 == answers(api, exchange_of("User:ANONYMOUS", 2, "SSL"))
    assert [64] * 4 == answers(api, exchange_of(ALICE, 2, by_token=True))
    assert [61] * 4 == answers(api, exchange_of(ALICE, 2, "SSL"))
    assert [61] * 4 == answers(api, exchange_of(ALICE, 2))


def test_only_owners_and_renewers_change_a_token() -> None:
    stage = started()
    admin = tokens_of(stage).admin
    api = DelegationTokens(admin, lambda listener: listener)
    token = created(stage, BOB, requester=ALICE, renewers=[CAROL])
    renew = messages.RenewDelegationTokenRequest(
        hmac=admin.cache.hmac_of(token.token_id), renew_period_ms=5000
    )
    codes = {}
    for principal in (ALICE, BOB, CAROL, "User:admin"):
        handled: Any = api.renew(renew, exchange_of(principal, 2))
        codes[principal] = handled.result().error_code
    assert {ALICE: 63, BOB: 0, CAROL: 0, "User:admin": 63} == codes
    stage.pass_time(5001)
    handled = api.renew(renew, exchange_of(BOB, 2))
    assert (66, -1) == (handled.result().error_code, handled.result().expiry_timestamp_ms)
    stage.stop()


def test_listeners_with_sasl_take_tokens() -> None:
    stage = secured_broker(delegation_token_master_key=SECRET)
    token = created(stage)
    listener = stage.broker.listeners._authentications["SASL"].listener
    server = listener.new_server("SCRAM-SHA-256")
    password = b64encode(token_hmac(SECRET, token.token_id)).decode()
    client = ScramConversation("SCRAM-SHA-256", token.token_id, password, b"abc", is_token=True)
    final = client.response_to(server.response_to(client.first()))
    assert final is not None
    server.response_to(final)
    assert ("alice", True, DAY_MS) == (server.user, server.is_token, server.lifetime_ms)
    stage.stop()
