"""The HTTP port, by the standard library."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from engine.host.http import HttpResponse, HttpUnreachable
from engine.limits import HTTP_BODY_BYTES_MAX

if TYPE_CHECKING:
    from http.client import HTTPMessage, HTTPResponse
    from typing import IO
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector, Request

_SCHEMES = {"http": 80, "https": 443}
#: The only header that is also sent to other origins: it reveals nothing about the client.
_FOR_ALL = "accept"
_READ_BYTES = 1 << 16


class HttpOrigin(NamedTuple):
    """The origin of a URL: credentials are sent to it alone (RFC 6454)."""

    scheme: str
    host: str | None
    port: int | None


def origin_of(url: str) -> HttpOrigin:
    """Return the origin of a URL; raises ValueError for an invalid port."""
    parts = urlsplit(url)
    return HttpOrigin(parts.scheme, parts.hostname, parts.port or _SCHEMES.get(parts.scheme))


class RealHttp:
    """Sends requests; certificates are checked against the system's trust store.

    A redirect to another origin (scheme, host, port) is followed with `Accept` alone: neither
    credentials nor any other header are sent to another server.
    """

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> HttpResponse:
        """Send a GET and return the response of any status; raises HttpUnreachable without one.

        `timeout_s` bounds the whole request.
        """
        return self._request(url, headers, None, timeout_s)

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> HttpResponse:
        """Send a POST and return the response of any status; raises HttpUnreachable without one.

        `timeout_s` bounds the whole request.
        """
        return self._request(url, headers, body, timeout_s)

    def _request(
        self, url: str, headers: Mapping[str, str], body: bytes | None, timeout_s: float
    ) -> HttpResponse:
        """Send one request; error statuses are responses, a failure raises HttpUnreachable.

        `timeout_s` bounds connecting, each read and the whole body.
        """
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import Request

        deadline_s = monotonic() + timeout_s
        try:
            request = Request(url, data=body, headers=dict(headers))
            if request.type not in _SCHEMES:
                raise HttpUnreachable(url, "expected an http or https address")
            with _create_opener().open(request, timeout=timeout_s) as response:
                return HttpResponse(response.status, _read_body(response, deadline_s))
        except HTTPError as error:
            with error:
                # Errors of reading the body here would not reach the handlers below: convert them
                # there.
                return HttpResponse(error.code, _read_error_body(error, url, deadline_s))
        except URLError as error:
            reason = getattr(error.reason, "strerror", None) or str(error.reason)
            raise HttpUnreachable(url, reason) from error
        except (OSError, HTTPException, ValueError) as error:
            raise HttpUnreachable(url, str(error) or type(error).__name__) from error


def _read_body(response: HTTPResponse, deadline_s: float) -> bytes:
    """Return a body of HTTP_BODY_BYTES_MAX at most; raises TimeoutError after the deadline.

    A socket's time-out bounds one read: a server that sends a byte now and then would never reach
    it.
    """
    parts: list[bytes] = []
    left = HTTP_BODY_BYTES_MAX
    while left and (part := response.read1(min(left, _READ_BYTES))):
        parts.append(part)
        left -= len(part)
        if monotonic() > deadline_s:
            raise TimeoutError("the response takes too long")
    return b"".join(parts)


def _read_error_body(error: HTTPError, url: str, deadline_s: float) -> bytes:
    """Return the body of an error response; raises HttpUnreachable if it cannot be read."""
    try:
        return _read_body(cast("HTTPResponse", error.fp), deadline_s)
    except OSError as failure:
        raise HttpUnreachable(url, str(failure)) from failure


def _create_opener() -> OpenerDirector:
    """Return an opener that follows redirects within the rules of `RealHttp`."""
    from urllib.error import URLError
    from urllib.request import HTTPRedirectHandler, build_opener

    class Redirections(HTTPRedirectHandler):
        """Redirects that pass only the `Accept` header to another origin."""

        # The parameters' names and order are those of the standard library.
        def redirect_request(
            self,
            req: Request,
            fp: IO[bytes],
            code: int,
            msg: str,
            headers: HTTPMessage,
            newurl: str,
        ) -> Request | None:
            """Follow a redirect to http or https; to another origin with `Accept` alone."""
            following = super().redirect_request(req, fp, code, msg, headers, newurl)
            if following is None:
                return None
            if following.type not in _SCHEMES:
                raise URLError(f"it redirects to {following.type}, which is no http")
            if origin_of(following.full_url) != origin_of(req.full_url):
                for name in list(following.headers):
                    if name.lower() != _FOR_ALL:
                        following.remove_header(name)
            return following

    return build_opener(Redirections)
