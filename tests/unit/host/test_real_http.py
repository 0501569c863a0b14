"""HTTP against a server of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from engine.host.http import HttpUnreachable
from engine.host.real_http import RealHttp


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


def test_a_response_has_status_and_body(address: str) -> None:
    assert (200, b"/a?b me") == RealHttp().get(f"{address}/a?b", {"X-Who": "me"}, 5)


def test_a_refusal_is_a_response_too(address: str) -> None:
    assert (404, b"/no me") == RealHttp().get(f"{address}/no", {"X-Who": "me"}, 5)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://a/b", "nonsense", "http://"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(HttpUnreachable):
        RealHttp().get(url, {}, 5)


def test_a_server_that_is_not_there_is_told_with_the_reason() -> None:
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


def test_what_is_no_http_is_told() -> None:
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
