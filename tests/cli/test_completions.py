"""Completion in the shells themselves: words, values, and what runs now; a shell that is absent is
skipped."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kctl.completion_live import can_be_offered, cluster_options_in, settings_in
from kctl.completions import all_commands
from tests.cli.shell import KCTL, Shell

SCRIPTS = Path(__file__).parent.parent.parent / "completions"
DEADLINE_S = 60
Complete = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("completions"))
    shell.ok("context", "set", "prod", "-b", "127.0.0.1:1")
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks", "-b", shell.status()["bootstrap_servers"])
    yield shell
    shell.run("cluster", "stop")


@pytest.fixture
def environment(shell: Shell, tmp_path: Path) -> dict[str, str]:
    """Return an environment whose kctl is ours, with the home of the cluster."""
    program = tmp_path / "bin" / "kctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(KCTL)} "$@"\n')
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(shell.home),
        "XDG_DATA_HOME": str(shell.home / "data"),
        "XDG_CONFIG_HOME": str(shell.home / "config"),
        "TERM": "dumb",
        "PYTHONPATH": str(SCRIPTS.parent),
        # This machine may have much else to do.
        "KCTL_COMPLETION_MS": f"{DEADLINE_S * 1000}",
    }


def _bash(line: str, environment: dict[str, str], separator: str | None = None) -> list[str]:
    # Words end at these characters, which are words themselves (COMP_WORDBREAKS).
    words = [word for word in re.split("([=:]+)| ", line) if word is not None]
    words = [word for word in words[:-1] if word] + words[-1:]
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        f"source {SCRIPTS}/kctl.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1};"
        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; _kctl 2>&1; "
        f"printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "" == done.stderr
    return done.stdout.strip().split(separator)


def _typed_in_bash(line: str, environment: dict[str, str]) -> str:
    """Type a line in bash at a terminal, press TAB, and return what the line is then."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "--norc", "-i"], environment)
    try:
        # The marks are not in what the terminal echoes.
        shown = 'echo "LI""NE<$READLINE_LINE>DO""NE"'
        setup = f"source {SCRIPTS}/kctl.bash; bind -x '\"\\C-g\": {shown}'; PS1='R''EADY> '\n"
        os.write(terminal, setup.encode())
        _read_until(terminal, "READY> ")
        os.write(terminal, f"{line}\t\x07".encode())
        return _read_until(terminal, ">DONE").rpartition("LINE<")[2].partition(">DONE")[0]
    finally:
        os.kill(pid, 9)
        os.close(terminal)
        os.waitpid(pid, 0)


def _fish(line: str, environment: dict[str, str]) -> list[str]:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = f"source {SCRIPTS}/kctl.fish; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "" == done.stderr
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


def _zsh(line: str, environment: dict[str, str]) -> list[str]:
    """Type a line in zsh at a terminal, press TAB twice, and return the words it lists."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
    try:
        setup = (
            f"autoload -Uz compinit; compinit -u -D; source {SCRIPTS}/kctl.zsh; "
            "mark() { echo LIST''ED; }; zle -N mark; bindkey '^G' mark; "
            "LISTMAX=10000; setopt no_beep; PROMPT='R''EADY> '\n"
        )
        os.write(terminal, setup.encode())
        _read_until(terminal, "READY> ")
        # Keys are taken in order: the last one says that the list is whole.
        os.write(terminal, f"{line}\t\t\x07".encode())
        return _read_until(terminal, "LISTED").split()
    finally:
        os.kill(pid, 9)
        os.close(terminal)
        os.waitpid(pid, 0)


def _read_until(terminal: int, mark: str) -> str:
    """Return what a terminal shows until a mark."""
    shown = ""
    while mark not in shown:
        readable, _, _ = select.select([terminal], [], [], DEADLINE_S)
        assert readable, shown
        shown += os.read(terminal, 1 << 16).decode(errors="replace")
    return shown


@pytest.fixture(params=["bash", "zsh", "fish"])
def complete(request: pytest.FixtureRequest, environment: dict[str, str]) -> Complete:
    """Return what lists the completions of a line in one shell."""
    of_shell = {"bash": _bash, "zsh": _zsh, "fish": _fish}[request.param]
    return lambda line: of_shell(line, environment)


def test_words_and_values_that_never_change_are_offered(complete: Complete) -> None:
    for line, wanted in (
        ("kctl topics ", {"list", "describe", "delete"}),
        ("kctl topics list --m", {"--match"}),
        ("kctl topics list -o ", {"table", "json", "name"}),
        ("kctl produce t -z ", {"gzip", "zstd"}),
        ("kctl completions ", {"bash", "zsh", "fish"}),
        ("kctl topics create t -c retention.", {"retention.ms=", "retention.bytes="}),
        ("kctl configs unset --topic t retention.", {"retention.ms"}),
        ("kctl configs unset --broker 1 log.retention.", {"log.retention.hours"}),
        ("kctl cluster start --set num.par", {"num.partitions="}),
        ("kctl topics list -X sasl.", {"sasl.username=", "sasl.mechanism="}),
        ("kctl copy a b --source-X ssl.ca", {"ssl.ca.location="}),
        ("kctl produce t -X lin", {"linger.ms="}),
    ):
        offered = set(complete(line))
        # One that is alone is completed, and not listed, by zsh.
        assert all(any(one in word for word in offered) for one in wanted), (line, offered)


def test_bash_leaves_a_key_for_its_value(environment: dict[str, str]) -> None:
    for key in ("-X sasl.username=", "--set num.partitions="):
        line = f"kctl cluster start {key}" if "--set" in key else f"kctl topics list {key}"
        assert line == _typed_in_bash(line[:-3], environment)


def test_bash_offers_no_name_within_a_word(
    shell: Shell, environment: dict[str, str], tmp_path: Path
) -> None:
    # Bash has split these at = and :, and what is behind them begins like a key, a topic.
    at = f"-b {shell.status()['bootstrap_servers']}"
    values = [
        "kctl configs set --topic clicks cleanup.policy=com",
        f"kctl topics alter clicks {at} -c cleanup.policy=cli",
        f"kctl topics describe {at} -X client.id=cli",
        f"kctl consume {at} other:cli",
        "kctl topics list -X client.id=",
    ]
    assert values == [_typed_in_bash(line, environment) for line in values]
    (tmp_path / "authority.pem").touch()
    line = f"kctl topics describe -X ssl.ca.location={tmp_path}/auth"
    assert f"{line}ority.pem " == _typed_in_bash(line, environment)


def test_what_is_there_now_is_offered(complete: Complete, shell: Shell) -> None:
    status = shell.status()
    where = f"-b {status['bootstrap_servers']}"
    for line, wanted in (
        ("kctl context use ", "prod"),
        ("kctl topics list --context ", "prod"),
        ("kctl znode ls -z ", status["zookeeper"]),
        (f"kctl topics describe {where} ", "clicks"),
    ):
        assert any(wanted in word for word in complete(line)), line


def test_a_cluster_that_is_not_there_is_silence(complete: Complete) -> None:
    offered = complete("kctl consume -b 127.0.0.1:1 ")
    assert not any("rror" in word or "clicks" in word for word in offered)


@pytest.mark.parametrize(
    "words",
    [
        ["topics", "-b", "127.0.0.1:1"],
        ["topics", "-b", "not an address"],
        ["topics", "--context", "unknown"],
        ["topics", "--command-config", "/no/such/file"],
        ["groups", "-b", "127.0.0.1:1"],
        ["unknown"],
        [],
    ],
)
def test_words_without_completions_are_no_error(tmp_path: Path, words: list[str]) -> None:
    done = Shell(tmp_path).run("__complete", *words)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_a_look_up_that_hangs_ends_in_time(tmp_path: Path) -> None:
    code = (
        "import socket, sys, time;"
        "socket.getaddrinfo = lambda *a, **k: time.sleep(60);"
        "from kctl.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, "__complete", "topics", "-b", "slow.example:9092"],
        capture_output=True,
        check=False,
    )
    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)
    # Most of this is the start of the interpreter on a machine with much to do.
    assert time.monotonic() - begun < 10


def test_the_cluster_is_read_from_the_line() -> None:
    line = ["topics", "describe", "-b", "h:1", "--context=prod", "--command-config"]
    assert {"bootstrap_server": "h:1", "context": "prod"} == cluster_options_in(line)


def test_the_settings_of_clients_are_read_from_the_line() -> None:
    line = ["consume", "-X", "sasl.username=bob", "-Xsasl.password=a=b", "-X", "isolation.level=x"]
    assert {"sasl.username": "bob", "sasl.password": "a=b"} == settings_in([*line, "-X", ""])


@pytest.mark.parametrize("quote", ["", "'"])
def test_a_typed_line_is_read_as_the_shell_reads_it(shell: Shell, quote: str) -> None:
    where = shell.status()["bootstrap_servers"]
    for settings, offered in (("client.id='a b'", "clicks\n"), ("security.protocol=SSL", "")):
        line = f"kctl topics describe -b {quote}{where}{quote} -X {settings} c"
        shell.environment["KCTL_COMPLETION_MS"] = "3000"
        assert offered == shell.ok("__complete", "topics", "--line", line)


def test_every_format_that_a_command_takes_is_offered() -> None:
    kinds = {
        command.path: kind
        for command in all_commands()
        for option, kind in command.values
        if option == "--output"
    }
    assert len(kinds) > 20
    assert [] == [path for path, kind in kinds.items() if "json" not in kind.split()]


HOSTILE = (
    "$(touch ran)",
    "`touch ran`",
    "a;touch ran",
    "a|touch ran",
    "<(touch ran)",
    "${HOME}",
    "~root",
    "*",
    "two words",
    "it's",
    '"quoted',
    "back\\slash",
    "(touch ran)",
    "%s%n",
    "!!",
)


@pytest.fixture
def hostile(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Return an environment in which every look-up of names gives hostile ones."""
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in HOSTILE))
    (tmp_path / "bin" / "kctl").write_text(f'#!/bin/sh\nexec cat "{tmp_path}/names"\n')
    return environment


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    "line",
    [
        "kctl topics describe ",
        "kctl consume ",
        "kctl context use ",
        "kctl topics list --context ",
        "kctl replay d --to t --topic ",
        "kctl znode ls -z ",
    ],
)
def test_names_are_data(
    name: str, line: str, hostile: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_shell = {"bash": _bash_lines, "zsh": _zsh, "fish": _fish}[name]
    offered = of_shell(line, hostile)
    assert not (tmp_path / "ran").exists()
    if name == "zsh":
        # A list on a terminal, with backslashes before what is special, and taken apart.
        words = {word.replace("\\", "") for text in HOSTILE for word in text.split()}
        assert words <= {word.replace("\\", "") for word in offered}
    elif name == "fish":
        # It offers the commands beside them.
        assert set(HOSTILE) <= set(offered)
    else:
        assert sorted(HOSTILE) == sorted(offered)


def test_files_are_data(hostile: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in HOSTILE:
        (folder / name).touch()
    lines = _bash_lines(f"kctl topics list --command-config {folder}/", hostile)
    assert sorted(f"{folder}/{name}" for name in HOSTILE) == sorted(lines)


def _bash_lines(line: str, environment: dict[str, str]) -> list[str]:
    return _bash(line, environment, separator="\n")


@pytest.mark.parametrize(
    "name", ["a\nb", "\x1b[31m", "a\tb", "--yes", "-y", "\u202etxt", "\ud800", "\x7f"]
)
def test_a_name_that_steers_a_terminal_or_is_an_option_is_not_offered(name: str) -> None:
    assert not can_be_offered(name)
    assert can_be_offered("clicks é 日本")
