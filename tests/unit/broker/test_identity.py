"""Which broker a directory belongs to."""

from __future__ import annotations

import pytest

from engine.broker.identity import known_broker_id
from engine.errors import ConfigError
from engine.host.memory import MemoryFiles


def files_with(**ids: int) -> MemoryFiles:
    files = MemoryFiles()
    for name, broker_id in ids.items():
        files.make_dir(f"/{name}")
        content = f"version=0\nbroker.id={broker_id}\ncluster.id=c\n"
        files.replace_file(f"/{name}/meta.properties", content.encode())
    return files


def test_a_configured_id_needs_no_directory() -> None:
    assert known_broker_id(MemoryFiles(), ["/a"], 4) == 4


def test_a_generated_id_is_found_again() -> None:
    assert known_broker_id(files_with(a=1001), ["/a", "/b"], -1) == 1001


def test_a_new_broker_has_none() -> None:
    assert known_broker_id(MemoryFiles(), ["/a"], -1) is None


@pytest.mark.parametrize(("ids", "configured"), [({"a": 1, "b": 2}, -1), ({"a": 1}, 2)])
def test_ids_that_contradict_each_other_stop_the_start(
    ids: dict[str, int], configured: int
) -> None:
    with pytest.raises(ConfigError, match=r"1, 2"):
        known_broker_id(files_with(**ids), [f"/{name}" for name in ids], configured)
