"""`kctl __complete KIND WORD...`: completion values that depend on files or a cluster.

Prints no errors, and values only if they are known within a time limit. WORDs are the words typed
after `kctl`; `--line LINE` gives the complete line instead, as typed. Of their options, those that
select the cluster and its client's settings are used.

`KCTL_COMPLETION_MS` sets another time limit, for a distant cluster.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl import exits

if TYPE_CHECKING:
    from kctl.connect import ClusterOptions

#: Default time limit: with the interpreter's start too short to be noticed as a pause.
_BUDGET_MS = 250
_BUDGET_VARIABLE = "KCTL_COMPLETION_MS"
_OPTIONS = {
    "-b": "bootstrap_server",
    "--bootstrap-server": "bootstrap_server",
    "--command-config": "command_config",
    "--context": "context",
}


def print_completions(args: Sequence[str]) -> int:
    """Print the values that complete a word, such as names of topics, one a line.

    None if they are not known in time. `args` are the kind of values and the words of the command
    line; the shells' completion scripts call it.
    """
    # DNS queries cannot be cancelled: the timer ends the process instead, without output.
    budget_s = _budget_s()
    watchdog = threading.Timer(budget_s, os._exit, (exits.OK,))
    watchdog.daemon = True
    watchdog.start()
    try:
        values = _completion_values(args[0], _words_after_kctl(args[1:]), budget_s) if args else []
    except Exception:
        values = []
    watchdog.cancel()
    sys.stdout.write("".join(f"{value}\n" for value in values if can_be_offered(value)))
    return exits.OK


def can_be_offered(value: str) -> bool:
    """Return True if a name is safe to complete: printable, and not an option.

    Servers may have topics and groups with arbitrary names.
    """
    return value.isprintable() and not value.startswith("-")


def _budget_s() -> float:
    """Return the time limit of a completion in s, from KCTL_COMPLETION_MS or by default 0.25."""
    text = os.environ.get(_BUDGET_VARIABLE, "")
    return (int(text) if text.isdecimal() and len(text) < 10 else _BUDGET_MS) / 1000


def _words_after_kctl(args: Sequence[str]) -> Sequence[str]:
    """Return the words after `kctl`: those of --line, or the arguments themselves."""
    if args[:1] != ["--line"]:
        return args
    import shlex

    line = "".join(args[1:2])
    try:
        return shlex.split(line)[1:]
    except ValueError:
        # The line has an unclosed quote.
        return line.split()[1:]


def _completion_values(kind: str, words: Sequence[str], budget_s: float) -> list[str]:
    """Return the values of a kind, such as `topics`; empty for an unknown kind."""
    if kind == "contexts":
        from engine.host.real import RealFiles
        from kctl.context import load_profiles, profiles_path

        return sorted(load_profiles(RealFiles(), profiles_path(os.environ)).by_name)
    if kind == "zookeepers":
        return _store_addresses()
    if kind == "outputs":
        return _schema_words(words)
    if kind == "topics":
        return _request_topics(words, budget_s)
    return _request_groups(words, budget_s) if kind == "groups" else []


def _schema_words(words: Sequence[str]) -> list[str]:
    """Return the words that can follow `kctl schema`: nouns, or the verbs of a noun."""
    from kctl.schemas import OUTPUTS

    nouns = list(dict.fromkeys(command.partition(" ")[0] for command in OUTPUTS))
    if len(words) < 2 or words[1] not in nouns:
        return nouns
    verbs = (command.partition(" ")[2] for command in OUTPUTS if command.split()[0] == words[1])
    return [verb for verb in verbs if verb]


def _store_addresses() -> list[str]:
    """Return the metadata store addresses of embedded clusters running on this machine."""
    from engine.cluster.data_directory import ClusterState, DataDirectory
    from engine.host.real import RealFiles
    from kctl.known_clusters import known_clusters

    addresses = []
    for path in known_clusters(RealFiles(), os.environ):
        data = DataDirectory(RealFiles(), path)
        running = data.running() if data.state() is ClusterState.RUNNING else None
        if running is not None and running.znode_address is not None:
            addresses.append(running.znode_address)
    return addresses


def cluster_options_in(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line that select the cluster."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and name in _OPTIONS:
            found[_OPTIONS[name]] = value
        elif word in _OPTIONS and index + 1 < len(words):
            found[_OPTIONS[word]] = words[index + 1]
    return found


def settings_in(words: Sequence[str]) -> dict[str, str]:
    """Return the `-X` settings of a command line, those that are valid for every client."""
    from engine.client.settings import CLIENT_KEYS

    found: dict[str, str] = {}
    for before, word in zip(("", *words), words, strict=False):
        key, _, value = (word if before == "-X" else word.removeprefix("-X")).partition("=")
        if (before == "-X" or word.startswith("-X")) and key in CLIENT_KEYS:
            found[key] = value
    return found


def _cluster_options(words: Sequence[str], budget_s: float) -> ClusterOptions:
    """Return the connection options in the words, with `budget_s` as time-out."""
    from kctl.connect import ClusterOptions

    given = cluster_options_in(words)
    return ClusterOptions(
        given.get("bootstrap_server"),
        given.get("command_config"),
        given.get("context"),
        budget_s,
        settings_in(words),
    )


def _request_topics(words: Sequence[str], budget_s: float) -> list[str]:
    """Request the names of all topics; raises if no broker responds in time."""
    from kctl.connect import connect

    with connect(_cluster_options(words, budget_s)) as client:
        return sorted(client.view(None).topics)


def _request_groups(words: Sequence[str], budget_s: float) -> list[str]:
    """Request the ids of all groups; brokers that do not respond in time are left out."""
    from engine.client.connection import Call, Response
    from engine.wire import messages
    from kctl.connect import connect

    timeout_ms = round(budget_s * 1000)
    with connect(_cluster_options(words, budget_s)) as client:
        brokers = client.brokers_view().brokers
        call = Call("ListGroups", messages.ListGroupsRequest())
        calls = {broker_id: (view.address, call) for broker_id, view in brokers.items()}
        results = client.exchange(calls, client.clock.monotonic_ms() + timeout_ms)
    responses = [result.message for result in results.values() if isinstance(result, Response)]
    return sorted({group.group_id for response in responses for group in response.groups})
