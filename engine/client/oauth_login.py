"""Source of a client's access token for OAUTHBEARER: a file, an address, or an unsecured token.

| given | token |
|---|---|
| `sasl.oauthbearer.token.endpoint.url=file:/run/token` | the content of the file |
| `…=https://issuer/token`, `clientId`, `clientSecret` and perhaps `scope` in the JAAS entry | by the grant of client credentials |
| no such address, `unsecuredLoginStringClaim_sub="alice"` in the JAAS entry | an unsecured one, made here |

Each connection reads it again: it may have been replaced.

Source: OAuthBearerLoginCallbackHandler, HttpAccessTokenRetriever, FileTokenRetriever,
OAuthBearerUnsecuredLoginCallbackHandler of 3.9.1; RFC 6749 §4.4.
"""  # noqa: E501 - a table

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.errors import AuthenticationFailed
from engine.errors import EngineError

OAUTHBEARER: Final = "OAUTHBEARER"
_LIFETIME_S: Final = 3600
_TIMEOUT_S: Final = 10.0
_OK: Final = 200


class OAuthLogin(NamedTuple):
    """The source of an access token; secrets never show in a repr."""

    url: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    #: The principal of an unsecured token, without a URL.
    unsecured_principal: str | None = None

    def __repr__(self) -> str:
        """Return the login without its client secret."""
        return f"OAuthLogin({self.url})"


def request_access_token(login: OAuthLogin, now_ms: int | None = None) -> str:
    """Return an OAuth access token for SASL/OAUTHBEARER, as `login` gets it.

    It is unsecured without a URL (`now_ms` is then its issue time, None: now), read from a `file:`
    URL, or requested by HTTP. Raises AuthenticationFailed.
    """
    url = login.url
    if url is None:
        return unsecured_access_token(login.unsecured_principal or "", now_ms)
    try:
        return _read_token_file(url) if url.startswith("file:") else _request_token(url, login)
    except AuthenticationFailed:
        raise
    except EngineError as error:
        raise AuthenticationFailed(OAUTHBEARER, f"no access token: {error}") from error


def unsecured_access_token(principal: str, now_ms: int | None = None) -> str:
    """Return an unsigned JWT for a principal, for brokers that accept such tokens.

    It is issued at `now_ms` (wall clock; None: now).
    """
    from engine.host.real import RealClock

    now_s = (RealClock().wall_ms() if now_ms is None else now_ms) // 1000
    claims = {"sub": principal, "iat": now_s, "exp": now_s + _LIFETIME_S}
    return f"{_jwt_part({'alg': 'none'})}.{_jwt_part(claims)}."


def _read_token_file(url: str) -> str:
    """Return the token in the file of a `file:` URL, without white space around it."""
    from urllib.parse import unquote, urlsplit

    from engine.host.real import RealFiles

    return RealFiles().read_bytes(unquote(urlsplit(url).path)).decode("ascii", "replace").strip()


def _request_token(url: str, login: OAuthLogin) -> str:
    """Request an access token by HTTP with the client credentials grant (RFC 6749, section 4.4).

    Raises AuthenticationFailed on a status other than 200 or without `request_access_token`.
    """
    from urllib.parse import urlencode

    from engine.host.real_http import RealHttp
    from engine.json_text import read_json

    credentials = b64encode(f"{login.client_id}:{login.client_secret}".encode()).decode()
    form = {"grant_type": "client_credentials"}
    if login.scope:
        form["scope"] = login.scope
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {credentials}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    response = RealHttp().post(url, headers, urlencode(form).encode(), _TIMEOUT_S)
    if response.status != _OK:
        raise AuthenticationFailed(OAUTHBEARER, f"{url} answers with status {response.status}")
    try:
        answer = read_json(response.body)
    except ValueError:
        answer = None
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token:
        raise AuthenticationFailed(OAUTHBEARER, f"{url} answers without an access_token")
    return token


def _jwt_part(content: Mapping[str, object]) -> str:
    """Return a JSON object encoded as one part of a JWT: base64url without padding."""
    import json

    raw = json.dumps(content, separators=(",", ":")).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")
