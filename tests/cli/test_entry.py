"""The entry point: nouns, exits, messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kctl import exits
from kctl.app import NOUNS
from kctl.completions import SHELLS, script
from tests.golden_dump import run_kctl

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent


def test_help_lists_every_noun() -> None:
    code, out, _ = run_kctl(["--help"], HERE)
    assert exits.OK == code
    assert all(f"  {name} " in out.decode() for name in NOUNS)


def test_nothing_at_all_is_wrong_usage() -> None:
    assert exits.USAGE == run_kctl([], HERE)[0]


def test_an_unknown_noun_names_the_nearest() -> None:
    code, _, err = run_kctl(["dump-logs"], HERE)
    assert exits.USAGE == code
    assert "kctl dump-log" in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("explain clicks", "its command is partition; `kctl explain --help`"),
        ("offsets clicks", "its commands are get, committed; `kctl offsets --help`"),
        ("topics lst", "`kctl topics --help` shows the usage"),
        ("cluster clicks", "`kctl cluster --help` shows the usage"),
        ("consume t --from-beginning", "`--from start` reads from the beginning, and is the d"),
        ("perf consume t --from-beginning", "`--from start` reads from the beginning, and is"),
        ("replay d --from-beginning", "`kctl replay --help` shows the usage"),
        ("groups reset-offsets g --from-beginning", "`--to-earliest` goes to the start; `kctl"),
        ("topics create t --add-config a=b", "`kctl topics create --help` shows the usage"),
        ("configs set --add-config a=b", "settings are arguments, KEY=VALUE; `kctl"),
        ("quotas set --add-config a=b", "settings are arguments, QUOTA=AMOUNT; `kctl"),
        ("quotas set --entity-type users", "--user, --client-id, --ip name the resource; `kctl"),
        (
            "configs describe --entity-name t",
            "--topic, --broker and their like name the resource; `kctl",
        ),
        ("cluster logs --entity-type brokers", "`kctl cluster logs --help` shows the usage"),
        ("acls list --entity-type topics", "`kctl acls list --help` shows the usage"),
        ("users create --entity-type users", "`kctl users create --help` shows the usage"),
        ("groups lag --group g", "groups are arguments, without --group; `kctl groups lag"),
        ("groups describe --topic t", "`kctl groups describe --help` shows the usage"),
        ("offsets get --group g", "`kctl offsets get --help` shows the usage"),
        ("topics describe --topic t", "topics are arguments, without --topic; `kctl topics"),
        ("topics describe --nothing t", "`kctl topics describe --help` shows the usage"),
    ],
)
def test_a_hint_names_what_kctl_has_instead(words: str, hint: str) -> None:
    code, _, err = run_kctl(words.split(), HERE)
    assert exits.USAGE == code
    assert f"\nhint: {hint}" in err


@pytest.mark.parametrize("name", [n for n in NOUNS if n != "dump-log"])
def test_every_noun_has_help(name: str) -> None:
    code, out, _ = run_kctl([name, "--help"], HERE)
    assert exits.OK == code
    assert b"Usage: kctl" in out


@pytest.mark.parametrize("name", [n for n in NOUNS if n != "dump-log"])
def test_a_wrong_option_is_wrong_usage(name: str) -> None:
    code, _, err = run_kctl([name, "--no-such-option"], HERE)
    assert exits.USAGE == code
    assert "error: " in err


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_in_step_with_the_commands(shell: str) -> None:
    stored = ROOT / "completions" / f"kctl.{shell}"
    assert script(shell) == stored.read_text(), "run `make completions`"


def _imported_by(arguments: str) -> set[str]:
    code = (
        "import sys; from kctl.__main__ import main; main(sys.argv[1:]);"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments.split()], capture_output=True, text=True, check=True
    )
    return set(run.stderr.splitlines())


def test_help_imports_next_to_nothing() -> None:
    assert not {"typer", "rich", "yaml", "json", "engine.records"} & _imported_by("--help")


def test_a_dump_imports_no_library_it_does_not_need() -> None:
    segment = ROOT / "tests/golden/plain/data/clicks-0/00000000000000000000.log"
    heavy = {"typer", "rich", "yaml", "numpy", "numba", "pyarrow", "importlib.metadata", "llvmlite"}
    assert not heavy & _imported_by(f"dump-log --files {segment}")


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    segment = ROOT / "tests/golden/plain/data/bulk-0/00000000000000000000.log"
    command = f"{sys.executable} -m kctl dump-log --print-data-log --files {segment} | head -c 10"
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False
    )
    assert b"" == run.stderr
    assert exits.BROKEN_PIPE == run.returncode


@pytest.mark.parametrize("command", ["dump-log --files {segment}", "logs dirs {folder}"])
def test_a_full_disk_under_the_output_is_a_clear_error(command: str) -> None:
    folder = ROOT / "tests/golden/plain/data"
    segment = folder / "clicks-0/00000000000000000000.log"
    words = command.format(folder=folder, segment=segment).split()
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "kctl", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert exits.FAILED == run.returncode
    assert b"error: the output cannot be written: No space left on device" in run.stderr
    assert b"Traceback" not in run.stderr


_AT_THE_END = "print('at the end', file=sys.stderr)"


@pytest.mark.parametrize(
    ("prepared", "said"),
    [
        # Only the end of the interpreter frees it.
        (f"class Kept:\n def __del__(self): {_AT_THE_END}\nsys.kept = Kept()", ""),
        (f"import atexit; atexit.register(lambda: {_AT_THE_END})", "at the end\n"),
        (
            "import threading\n"
            f"def later(): threading.main_thread().join(); {_AT_THE_END}\n"
            "threading.Thread(target=later).start()",
            "at the end\n",
        ),
    ],
)
def test_a_process_ends_at_once_unless_something_waits_for_it(prepared: str, said: str) -> None:
    code = f"import sys\n{prepared}\nfrom kctl.__main__ import entry\nentry()"
    run = subprocess.run(
        [sys.executable, "-c", code, "offsets", "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert exits.USAGE == run.returncode
    assert said == run.stderr.partition("shows the usage\n")[2]


_SECOND_SIGNAL = """
import os, signal, sys
from kctl import __main__ as program, exits

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def interrupted_again(_error, interrupted=exits.interrupted):
    exits.interrupted = interrupted
    interrupt()

def import_interrupted(imported=program._signals):
    if exits.OwnProcess.is_own and was_interrupted:
        program._signals = imported
        interrupt()
    return imported()

was_interrupted = False

def command():
    global was_interrupted
    was_interrupted = True
    raise KeyboardInterrupt

program.main = command
"""


@pytest.mark.parametrize(
    "replaced",
    ["exits.interrupted = interrupted_again", "program._signals = import_interrupted"],
)
def test_a_second_signal_leaves_no_traceback(replaced: str) -> None:
    code = f"{_SECOND_SIGNAL}\n{replaced}\nprogram.entry()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "" == run.stderr
    assert exits.INTERRUPTED == run.returncode


def test_garbage_is_collected_while_a_command_runs_but_not_what_it_imported() -> None:
    code = (
        "import gc, sys\nfrom kctl.__main__ import entry\n"
        "from kctl.commands.schema import app\n"
        "class Said:\n def write(self, text):\n"
        "  states.add((gc.isenabled(), gc.get_freeze_count() > 0)); return len(text)\n"
        " def flush(self): print(states, file=sys.stderr)\n"
        "states = set()\nimport kctl.standard_streams as streams\n"
        "def prepare(): assert not gc.isenabled(); sys.stdout = Said()\n"
        "streams.prepare_streams = prepare\nentry()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, "schema", "topics", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "{(True, True)}" == run.stderr.splitlines()[0]
