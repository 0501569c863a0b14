"""A server of a few pages, on a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from engine.host.http_server import AddressNotServed, PageServer, ServedPage
from engine.host.real_http import RealHttp


@pytest.fixture
def server() -> Iterator[PageServer]:
    def metrics(accept: str) -> ServedPage:
        return ServedPage(200, "text/plain", f"for {accept}".encode())

    served = PageServer("127.0.0.1", 0, {"/metrics": metrics})
    thread = threading.Thread(target=served.serve)
    thread.start()
    yield served
    served.stop()
    thread.join()
    served.close()


def test_a_page_is_made_for_the_formats_that_are_accepted(server: PageServer) -> None:
    url = f"http://127.0.0.1:{server.port}"
    page = RealHttp().get(f"{url}/metrics?x=1", {"Accept": "text/plain"}, 30)
    assert (200, b"for text/plain") == page
    assert 404 == RealHttp().get(f"{url}/other", {}, 30).status


def test_a_head_has_no_body(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(b"HEAD /metrics HTTP/1.0\r\nAccept: a\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b"Content-Length: 5" in received
    assert received.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(("fault", "is_reported"), [(ValueError, True), (ConnectionError, False)])
def test_a_page_that_fails_is_reported_and_a_reader_who_went_away_is_not(
    capsys: pytest.CaptureFixture[str], fault: type[Exception], *, is_reported: bool
) -> None:
    def page(_accept: str) -> ServedPage:
        raise fault("of the page")

    server = PageServer("127.0.0.1", 0, {"/": page})
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b"" == connection.recv(4096)
    finally:
        server.stop()
        thread.join()
        server.close()
    assert is_reported == ("of the page" in capsys.readouterr().err)


def test_a_port_that_is_in_use_is_an_error(server: PageServer) -> None:
    place = f"cannot listen on 127.0.0.1:{server.port}: .*in use"
    with pytest.raises(AddressNotServed, match=place):
        PageServer("127.0.0.1", server.port, {})


def test_addresses_of_ipv6_are_served() -> None:
    try:
        server = PageServer("::1", 0, {})
    except AddressNotServed as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    with socket.create_connection(("::1", server.port), 30):
        server.close()


@pytest.mark.parametrize("host", ["no such host", "x" * 70])
def test_a_host_without_an_address_is_an_error(host: str) -> None:
    with pytest.raises(AddressNotServed):
        PageServer(host, 0, {})
