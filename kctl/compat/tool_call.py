"""A call of a tool that imitates several releases: its arguments and its ports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TextIO

from engine.errors import EngineError
from kctl.compat.releases import Release
from kctl.connect import ClusterOptions

if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient
    from engine.host.ports import Files

Connect = Callable[[ClusterOptions], "KafkaClient"]


class ToolEnded(EngineError):
    """The tool has printed its output, and ends with this exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the tool ends with {exit_code}")
        self.exit_code = exit_code


class ToolCall(NamedTuple):
    """A tool with its arguments, the release it imitates, its client factory and streams."""

    tool: str
    arguments: Sequence[str]
    release: Release
    connecting: Connect
    files: Files
    stdin: BinaryIO
    out: TextIO
    err: TextIO

    @property
    def is_four(self) -> bool:
        """Return True if the tool of 4.3.0 is imitated."""
        return self.release.is_four

    def admit(self, names: Iterable[str], servers: str) -> None:
        """Check whether the current context allows this call, before any request.

        `names` are the given options, `servers` the bootstrap servers. Errors: those of
        `guard.check_guards`.
        """
        from kctl.guard import check_guards

        parameters: dict[str, object] = dict.fromkeys(names, True)
        check_guards(f"compat {self.tool}", {**parameters, "bootstrap_server": servers})

    def admit_store(self, action: str, address: str, path: str, timeout_s: float) -> None:
        """Check whether the current context allows a change of a ZooKeeper store's nodes.

        `action` is the command that changes them. Errors: those of `guard.check_guards`.
        """
        from kctl.guard import check_guards

        store = {"zookeeper": address, "data": None, "timeout": timeout_s}
        check_guards(
            f"compat {self.tool}", {action: True, **store, "path": path, "recursive": True}
        )

    def client(
        self, servers: str, properties: Mapping[str, str], *, timeout_s: float = 60.0
    ) -> KafkaClient:
        """Return a client of `servers` with these properties of a Java client.

        `timeout_s` limits each call. Errors: ToolFailure for invalid properties or addresses.
        """
        from engine.client.errors import ClientSettingRefused
        from kctl.compat.java_client import check_bootstrap, refused_setting_failure

        options = ClusterOptions(
            check_bootstrap(servers), timeout_s=timeout_s, overrides=properties
        )
        try:
            return self.connecting(options)
        except ClientSettingRefused as error:
            raise refused_setting_failure(error) from error

    def properties(self, path: str | None) -> dict[str, str]:
        """Return the properties of a file, empty for None.

        Errors: ToolFailure if it is unreadable.
        """
        if path is None:
            return {}
        from engine.host.ports import FileMissing, FileRefused
        from kctl.compat.java_client import unreadable_properties_failure
        from kctl.properties_file import read_properties

        try:
            return read_properties(self.files, path)
        except (FileMissing, FileRefused) as error:
            raise unreadable_properties_failure(path, error) from error

    def print_bytes(self, data: bytes) -> None:
        """Write bytes to stdout after flushing the text printed before."""
        self.out.flush()
        self.out.buffer.write(data)

    def flush(self) -> None:
        """Flush the tool's standard output."""
        self.out.flush()

    def drop_output(self) -> None:
        """Discard further output: the reader of the pipe has closed it, and a flush would fail."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())


def real_call(
    tool: str,
    arguments: Sequence[str],
    release: Release,
    connecting: Connect,
    files: Files,
    stdin: BinaryIO | None = None,
) -> ToolCall:
    """Return a call on the streams of this process; `stdin` None means its stdin."""
    source = sys.stdin.buffer if stdin is None else stdin
    return ToolCall(tool, arguments, release, connecting, files, source, sys.stdout, sys.stderr)
