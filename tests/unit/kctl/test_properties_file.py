"""Properties files of commands: pipes are read once, and settings of the command's own count."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.host.real import RealFiles
from kctl.client_overrides import parse_client_overrides
from kctl.connect import ClusterOptions, read_client_settings, settings_in_file
from kctl.properties_file import read_properties


def test_a_pipe_gives_its_properties_as_often_as_they_are_wanted() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"bootstrap.servers=here:9092\nclient.id=me\n")
    os.close(writer)
    path = f"/dev/fd/{reader}"
    try:
        first = read_properties(RealFiles(), path)
        assert first == read_properties(RealFiles(), path)
        assert "me" == read_client_settings(path, {}).client_id
    finally:
        os.close(reader)


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    for name in ("a", "b"):
        path.write_text(f"client.id={name}\n")
        assert {"client.id": name} == read_properties(RealFiles(), str(path))


def test_own_settings_of_a_command_come_from_the_file_below_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "consumer.properties"
    path.write_text("group.protocol=consumer\nclient.rack=r1\nclient.id=me\n")
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "none.yaml"))
    keys = ("group.protocol", "client.rack", "isolation.level")
    options = ClusterOptions("here:9092", str(path))
    found = settings_in_file(options, keys)
    assert {"group.protocol": "consumer", "client.rack": "r1"} == found
    overrides = parse_client_overrides(["client.rack=r2"], keys).above(found)
    assert {"group.protocol": "consumer", "client.rack": "r2"} == overrides.own
    assert {} == settings_in_file(ClusterOptions("here:9092"), keys)
