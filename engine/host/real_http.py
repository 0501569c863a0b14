"""HTTP by the standard library."""

from __future__ import annotations

from collections.abc import Mapping

from engine.host.http import HttpResponse, HttpUnreachable
from engine.limits import HTTP_BODY_BYTES_MAX


class RealHttp:
    """Asks servers of the network; certificates are checked against those of the system."""

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> HttpResponse:
        """Return the response of any status; raises HttpUnreachable without one."""
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        try:
            request = Request(url, headers=dict(headers))
            if request.type not in ("http", "https"):
                raise HttpUnreachable(url, "expected an http or https address")
            with urlopen(request, timeout=timeout_s) as response:
                return HttpResponse(response.status, response.read(HTTP_BODY_BYTES_MAX))
        except HTTPError as error:
            with error:
                return HttpResponse(error.code, error.read(HTTP_BODY_BYTES_MAX))
        except URLError as error:
            reason = getattr(error.reason, "strerror", None) or str(error.reason)
            raise HttpUnreachable(url, reason) from error
        except (OSError, HTTPException, ValueError) as error:
            raise HttpUnreachable(url, str(error) or type(error).__name__) from error
