"""`kctl certs`: which files there are, and for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.host.certificates import BadCertificateName
from engine.host.real import RealFiles
from kctl.arguments import UnreadableArgument
from kctl.commands.certs.issuing import CertificatesRequest, write_certificates
from tests.cli.shell import Shell
from tests.cli.test_schemas import check


def test_keys_are_for_their_owner_alone_and_nothing_is_overwritten(tmp_path: Path) -> None:
    shell, folder = Shell(tmp_path), tmp_path / "tls"
    new = ("certs", "new", str(folder))
    rows = check("certs new", shell.ok(*new, "--broker", "b", "--client", "c", "-o", "json"))
    assert ["authority", "broker", "client"] == [row["kind"] for row in rows]
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert {"ca.key": 0o600, "b.pem": 0o600, "c.pem": 0o600} == {
        name: mode for name, mode in modes.items() if name != "ca.pem"
    }
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused = shell.run(*new, "--broker", "d", "--client", "c")
    assert 2 == refused.returncode
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    words = ("--client", "e", "--days", "3650", "-o", "json")
    more = check("certs new", shell.ok(*new, *words))
    assert ["kept", "created"] == [row["result"] for row in more]
    assert rows[0]["subject"] == more[0]["subject"]
    # It ends with its authority.
    assert [rows[0]["expires_ms"]] * 2 == [row["expires_ms"] for row in more]
    (folder / "ca.key").unlink()
    assert 2 == shell.run(*new, "--client", "f").returncode
    for name in ("../x", "ca", ""):
        assert 2 == shell.run(*new, "--client", name).returncode


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (["x" * 65], []),
        (["CA"], []),
        (["ok"], ["kafka1:9092"]),
        (["ok"], ["two words"]),
        (["ok"], ["a..b"]),
        (["ok"], [f"{'a.' * 127}b"]),
    ],
)
def test_nothing_is_written_for_what_cannot_be_in_a_certificate(
    names: list[str], hosts: list[str], tmp_path: Path
) -> None:
    folder = str(tmp_path / "tls")
    request = CertificatesRequest(folder, ["first"], names, hosts, 1, "table")
    with pytest.raises((UnreadableArgument, BadCertificateName)):
        write_certificates(request, RealFiles(), now_ms=0)
    assert not Path(folder).exists()
