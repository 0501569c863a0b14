"""HTTP against a server of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NamedTuple

import pytest

from engine.host.http import HttpUnreachable
from engine.host.real_http import RealHttp, origin_of


class Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} {self.headers.get('X-Who')}".encode()
        self.send_response(404 if self.path.startswith("/no") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Told(NamedTuple):
    """A server, and the requests that it was sent: paths and headers."""

    address: str
    requests: list[tuple[str, dict[str, str]]]
    #: Where it redirects requests of a path to.
    locations: dict[str, str]


@contextmanager
def _server(host: str = "127.0.0.1") -> Iterator[Told]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            location = told.locations.get(self.path)
            self.send_response(200 if location is None else 302)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer((host, 0), Handler) as server:
        told = Told(f"http://{host}:{server.server_port}", [], {})
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield told
        server.shutdown()
        thread.join()


_SECRETS = {
    "Authorization": "Basic c2VjcmV0",
    "Cookie": "session=secret",
    "X-Api-Key": "secret",
    "Accept": "application/json",
}


def _is_secret_told(told: Told) -> bool:
    return any("ecret" in value for _, headers in told.requests for value in headers.values()) or (
        any("c2VjcmV0" in value for _, headers in told.requests for value in headers.values())
    )


def test_credentials_follow_no_redirection_to_another_server() -> None:
    with _server() as ours, _server() as other:
        ours.locations["/a"] = f"{other.address}/b"
        assert (200, b"{}") == RealHttp().get(f"{ours.address}/a", _SECRETS, 5)
    assert _is_secret_told(ours)
    ((path, headers),) = other.requests
    assert ("/b", "application/json") == (path, headers["accept"])
    assert not _is_secret_told(other)


def test_credentials_follow_no_redirection_to_another_name_of_the_server() -> None:
    with _server() as ours:
        ours.locations["/a"] = ours.address.replace("127.0.0.1", "localhost") + "/b"
        RealHttp().get(f"{ours.address}/a", _SECRETS, 5)
    (_, first), (_, second) = ours.requests
    assert ("authorization" in first, "authorization" in second) == (True, False)


def test_credentials_do_not_come_back_by_a_detour() -> None:
    with _server() as ours, _server() as other:
        ours.locations["/a"] = f"{other.address}/b"
        other.locations["/b"] = f"{ours.address}/c"
        RealHttp().get(f"{ours.address}/a", _SECRETS, 5)
    assert ["/a", "/c"] == [path for path, _ in ours.requests]
    assert "authorization" not in ours.requests[1][1]


def test_credentials_follow_a_redirection_within_the_server() -> None:
    with _server() as ours:
        ours.locations["/a"] = "/b"
        RealHttp().get(f"{ours.address}/a", _SECRETS, 5)
    assert ["Basic c2VjcmV0"] * 2 == [headers["authorization"] for _, headers in ours.requests]


def test_a_proxys_password_stays_with_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with _server() as proxy, _server() as other:
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", "//u:secret@"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        proxy.locations["http://registry.invalid/a"] = f"{other.address}/b"
        RealHttp().get("http://registry.invalid/a", {}, 5)
    assert "proxy-authorization" in proxy.requests[0][1]
    assert "proxy-authorization" not in other.requests[0][1]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("http://a/x", "http://a:80/y", True),
        ("https://a/x", "https://A:443/y", True),
        ("https://a/x", "http://a/x", False),
        ("https://a/x", "http://a:443/x", False),
        ("http://a/x", "http://a:8081/x", False),
        ("http://a/x", "http://a.b/x", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, is_same: bool) -> None:
    assert is_same == (origin_of(one) == origin_of(other))


def test_a_redirection_to_something_else_is_not_followed() -> None:
    with _server() as ours:
        ours.locations["/a"] = "ftp://127.0.0.1/b"
        with pytest.raises(HttpUnreachable, match="redirects to ftp"):
            RealHttp().get(f"{ours.address}/a", _SECRETS, 5)


def test_a_response_has_status_and_body(address: str) -> None:
    assert (200, b"/a?b me") == RealHttp().get(f"{address}/a?b", {"X-Who": "me"}, 5)


def test_a_refusal_is_a_response_too(address: str) -> None:
    assert (404, b"/no me") == RealHttp().get(f"{address}/no", {"X-Who": "me"}, 5)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://a/b", "nonsense", "http://"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(HttpUnreachable):
        RealHttp().get(url, {}, 5)


def test_a_server_that_is_not_there_is_reported_with_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(HttpUnreachable, match="Connection refused") as failed:
        RealHttp().get(f"http://127.0.0.1:{port}/x", {}, 5)
    assert 3 == failed.value.exit_code


def test_a_server_that_says_nothing_is_left_after_the_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(HttpUnreachable, match="timed out"),
    ):
        RealHttp().get(f"http://127.0.0.1:{silent.getsockname()[1]}/x", {}, 0.05)


def test_a_response_that_is_not_http_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:

        def speak() -> None:
            peer, _ = odd.accept()
            with peer:
                peer.sendall(b"SSH-2.0\r\n\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(HttpUnreachable):
            RealHttp().get(f"http://127.0.0.1:{odd.getsockname()[1]}/x", {}, 5)
        thread.join()


@pytest.mark.parametrize("status", ["200 OK", "500 No"])
def test_a_server_that_sends_a_byte_now_and_then_is_left_after_the_time(status: str) -> None:
    is_over = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        # The other end closes in the middle.
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(f"HTTP/1.0 {status}\r\n\r\n".encode())
            while not is_over.wait(0.02):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with pytest.raises(HttpUnreachable, match="takes too long"):
            RealHttp().get(f"http://127.0.0.1:{listener.getsockname()[1]}/", {}, 0.2)
        is_over.set()
        thread.join()
