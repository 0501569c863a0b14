"""The keys that sign access tokens (JWKS): read from a file or a URL, and refreshed.

```
sasl.oauthbearer.jwks.endpoint.url=file:/etc/kafka/jwks.json     https://issuer/keys
```

The first read is synchronous, and the listener does not open if it fails. Then a worker thread
reads the keys every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and, at most every ten seconds,
when a token has an unknown key id. If the source cannot be read, the present keys are kept.

Source: RefreshingHttpsJwks, VerificationKeyResolverFactory of 3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlsplit

from engine.broker.tasks import LoopTasks
from engine.errors import ConfigError, EngineError
from engine.host.http import Http
from engine.host.ports import Clock, Files
from engine.security.oauth_tokens import JsonKey, TokenRefused, key_id, parse_jwks_keys

_log = logging.getLogger("kafka.server.Jwks")
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_TIMEOUT_S: Final = 10.0
_OK: Final = 200
#: Shortest time between two reads because of an unknown key id.
_UNKNOWN_KEY_PAUSE_MS: Final = 10_000


class KeysUnreadable(EngineError):
    """The keys could not be read."""


class JwksKeys:
    """The keys of one URL."""

    def __init__(self, url: str, read: Callable[[str], list[JsonKey]], clock: Clock) -> None:
        """Read the keys that verify OAuth tokens from `url` by `read`; raises ConfigError.

        `read` is called again later, on a worker thread.
        """
        self.url = url
        self._read = read
        self._clock = clock
        #: Whether a read on a worker thread is running.
        self._is_reading = False
        #: When the keys were last read (monotonic), for the refresh interval.
        self._read_ms = clock.monotonic_ms()
        #: Runs the first function on a worker thread, then the second on the loop. None until the
        #: broker sets it: `refresh` does nothing before.
        self.offload: Callable[[Callable[[], None], Callable[[], None]], None] | None = None
        try:
            self._keys = read(url)
        except EngineError as error:
            raise ConfigError(_URL, url, f"cannot be read: {error}") from error

    def for_token(self, text: str) -> list[JsonKey]:
        """Return the present keys for the verification of a token.

        If the token's key id is unknown, a refresh is started, for later tokens. Raises
        TokenRefused for a malformed token.
        """
        wanted = key_id(text)
        is_known = wanted is None or any(key.get("kid") == wanted for key in self._keys)
        waited_ms = self._clock.monotonic_ms() - self._read_ms
        if not is_known and waited_ms >= _UNKNOWN_KEY_PAUSE_MS:
            self.refresh()
        return self._keys

    def refresh(self) -> None:
        """Start to read the keys again on a worker thread, unless a read is running."""
        if self.offload is None or self._is_reading:
            return
        self._is_reading = True
        self._read_ms = self._clock.monotonic_ms()
        found: list[list[JsonKey]] = []

        def read_keys() -> None:
            """Read the keys; after an error log it and keep the present keys."""
            try:
                found.append(self._read(self.url))
            except EngineError as error:
                _log.warning("The keys of %s stay as they are: %s", self.url, error)

        def end_reading() -> None:
            """Use the keys that were read, on the event loop."""
            self._is_reading = False
            if found:
                self._keys = found[0]

        self.offload(read_keys, end_reading)


class JwksCache:
    """The keys of all URLs in the settings of listeners."""

    def __init__(self, files: Files, http: Http | None, clock: Clock) -> None:
        """Create the cache of keys by URL, without keys.

        `http` is None if the broker has no HTTP client.
        """
        self._files = files
        self._http = http
        self._clock = clock
        #: Keys by URL: several listeners may use the same.
        self._by_url: dict[str, JwksKeys] = {}
        #: Refreshes the keys periodically. None before the broker's tasks exist.
        self._tasks: LoopTasks | None = None

    def run_on(self, tasks: LoopTasks) -> None:
        """Let `tasks` refresh the keys of URLs that are added from now on."""
        self._tasks = tasks

    def of(self, url: str, refresh_ms: int) -> JwksKeys:
        """Return the keys of a URL; the first call reads them, and may raise ConfigError.

        They are read again each `refresh_ms`.
        """
        keys = self._by_url.get(url)
        if keys is None:
            keys = self._by_url[url] = JwksKeys(url, self._read, self._clock)
            tasks = self._tasks
            if tasks is not None:
                keys.offload = lambda work, done: tasks.offload("jwks", work, lambda _error: done())
                tasks.every("refresh-jwks", refresh_ms, keys.refresh, first_after_ms=refresh_ms)
        return keys

    def _read(self, url: str) -> list[JsonKey]:
        """Read the keys from a file or web server; raise KeysUnreadable if there are none."""
        parts = urlsplit(url)
        if parts.scheme == "file":
            document = self._files.read_bytes(unquote(parts.path))
        elif self._http is None:
            raise KeysUnreadable("this broker reaches no web server")
        else:
            response = self._http.get(url, {"Accept": "application/json"}, _TIMEOUT_S)
            if response.status != _OK:
                raise KeysUnreadable(f"the server answers with status {response.status}")
            document = response.body
        try:
            return parse_jwks_keys(document)
        except TokenRefused as error:
            raise KeysUnreadable(str(error)) from error
