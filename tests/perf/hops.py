"""What the way of a replicated record costs where nobody does anything on it.

    python -m tests.perf.hops [--rounds 5000]

client ─> leader ─> two followers ─> leader ─> client, a process each, as many bytes as a record of
100 B has: the leader answers when both followers have. Prints the median time, and the CPU of the
three. A cluster of processes cannot be quicker.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import time
from collections.abc import Callable

from engine.host.event_loop import EventLoop

_REQUEST, _RECORDS, _FETCH, _RESPONSE = b"q" * 180, b"x" * 250, b"y" * 120, b"z" * 60


def _ready(sock: socket.socket) -> socket.socket:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _run(handlers: dict[socket.socket, Callable[[], None]]) -> None:
    loop = EventLoop()
    buffer = bytearray(1 << 16)

    def reader(sock: socket.socket, handle: Callable[[], None]) -> Callable[[], None]:
        def readable() -> None:
            if not sock.recv_into(buffer):
                os._exit(0)
            handle()

        return readable

    for sock, handle in handlers.items():
        sock.setblocking(False)
        loop.watch_readable(sock.fileno(), reader(sock, handle))
    loop.run()


def _follow(leader: socket.socket) -> None:
    _run({leader: lambda: leader.send(_FETCH) and None})


def _lead(client: socket.socket, followers: list[socket.socket]) -> None:
    waiting = [0]

    def produced() -> None:
        waiting[0] = len(followers)
        for follower in followers:
            follower.send(_RECORDS)

    def fetched() -> None:
        waiting[0] -= 1
        if not waiting[0]:
            client.send(_RESPONSE)

    _run({client: produced, **dict.fromkeys(followers, fetched)})


def _fork(work: Callable[[], None]) -> int:
    process = os.fork()
    if not process:
        work()
        os._exit(0)
    return process


def _cpu_us(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().split()
    return (int(fields[13]) + int(fields[14])) * 1e6 / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5000)
    rounds = parser.parse_args().rounds
    listener = socket.create_server(("127.0.0.1", 0))
    processes, followers = [], []
    for _ in range(2):
        end = _ready(socket.create_connection(listener.getsockname()))
        followers.append(_ready(listener.accept()[0]))
        processes.append(_fork(lambda end=end: _follow(end)))
        end.close()
    client = _ready(socket.create_connection(listener.getsockname()))
    local_client = _ready(listener.accept()[0])
    processes.append(_fork(lambda: _lead(local_client, followers)))
    took, before = [], 0.0
    for number in range(-500, rounds):
        if number == 0:
            before = sum(map(_cpu_us, processes))
        start = time.perf_counter()
        client.send(_REQUEST)
        client.recv(100)
        if number >= 0:
            took.append(time.perf_counter() - start)
    cpu_us = (sum(map(_cpu_us, processes)) - before) / rounds
    print(f"p50 {statistics.median(took) * 1e6:.0f} µs, CPU of three {cpu_us:.0f} µs")
    for process in processes:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()
