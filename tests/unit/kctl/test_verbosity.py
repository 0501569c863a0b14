"""Every command that names a cluster can say which one it means."""

from __future__ import annotations

from kctl.completions import all_commands

_TARGETS = {"--bootstrap-server", "--zookeeper"}


def test_every_command_that_talks_to_a_cluster_takes_v() -> None:
    words = {command.path: {name for name, _ in command.options} for command in all_commands()}
    talking = {path: options for path, options in words.items() if _TARGETS & options}
    # Keeping a context talks to nobody.
    del talking["context set"]
    assert len(talking) > 20
    assert [] == [path for path, options in talking.items() if "--verbose" not in options]
    assert not any("--verbose" in words[path] for path in ("context set", "cluster start"))
