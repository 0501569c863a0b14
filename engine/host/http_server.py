"""A small HTTP server: GET and HEAD of a few paths, each with a complete response."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from engine.errors import EngineError

_CLIENT_WAIT_S = 30


class ServedPage(NamedTuple):
    """A response: status, type and body."""

    status: int
    content_type: str
    body: bytes


#: Makes a page from the request's Accept header.
Page = Callable[[str], ServedPage]


class AddressNotServed(EngineError):
    """An address cannot be listened on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host}:{port}: {reason}")
        self.hint = "choose another --port or --host, or stop what listens there"
        self.host = host
        self.port = port


class _Server(ThreadingHTTPServer):
    """A server that does not wait for its connections at its end, and ignores broken ones."""

    daemon_threads = True

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Report an error in a response, unless the client has closed its connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class PageServer:
    """Serves pages, made one at a time; every connection has a thread."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
        """Listen on a host and port; port 0 lets the system choose. Raises AddressNotServed."""
        try:
            self._server = _create_server(host, port, _create_handler_class(pages))
        except (OSError, OverflowError, UnicodeError) as error:
            raise AddressNotServed(
                host, port, getattr(error, "strerror", None) or str(error)
            ) from None

    @property
    def port(self) -> int:
        """Return the port that the server listens on."""
        return int(self._server.server_address[1])

    def serve(self) -> None:
        """Serve until `stop`, or an exception such as KeyboardInterrupt."""
        self._server.serve_forever()

    def stop(self) -> None:
        """Make `serve` return; called on another thread."""
        self._server.shutdown()

    def close(self) -> None:
        """Stop listening, after `serve` has returned."""
        self._server.server_close()


def _create_server(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    """Return a server that listens at a host name, or an IPv4 or IPv6 address; raises OSError."""
    kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
    family = socket.getaddrinfo(host or None, port, type=kind, flags=flags)[0][0]

    class Server(_Server):
        """A server with the address family of its host."""

        address_family = family

    return Server((host, port), handler)


def _create_handler_class(pages: Mapping[str, Page]) -> type[BaseHTTPRequestHandler]:
    """Return a request handler class for `pages` (by path); pages are made one at a time."""
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        """Answers one connection."""

        timeout = _CLIENT_WAIT_S

        def do_GET(self) -> None:
            """Send the page of the path."""
            self._answer(has_body=True)

        def do_HEAD(self) -> None:
            """Send the headers of the page of the path."""
            self._answer(has_body=False)

        def _answer(self, *, has_body: bool) -> None:
            """Send the page of the path, 404 for an unknown one; HEAD has no body."""
            make = pages.get(self.path.partition("?")[0])
            if make is None:
                page = ServedPage(404, "text/plain; charset=utf-8", b"no such page\n")
            else:
                with turn:
                    page = make(self.headers.get("Accept", ""))
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            if has_body:
                self.wfile.write(page.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing: scrapes every few seconds would fill the log."""

    return Handler
