"""The schemas of `-o json`: there for every command, and true of what it prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.dump.rows import BATCH_COLUMNS, INDEX_COLUMNS, RECORD_COLUMNS
from kctl import exits
from kctl.app import NOUNS
from kctl.commands.dump_log import columns as dump_log_columns
from kctl.schemas import OUTPUTS, schema_of
from tests.cli.shell import Shell
from tests.client_session import VERSIONS, Step, load_session, replay
from tests.golden_dump import run_kctl
from tools.reference import FOLDER, schema_files

pytestmark = pytest.mark.xdist_group("schemas")
GOLDEN = Path(__file__).parent.parent / "golden"


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
    for name, child in (children or {}).items():
        yield from _leaves(f"{path} {name}", child)


def commands_with_output() -> list[str]:
    from typer.main import get_command

    leaves = [
        leaf
        for name, noun in NOUNS.items()
        for leaf in _leaves(
            name, get_command(import_module(f"kctl.commands.{noun.module}.app").app)
        )
    ]
    return [path for path, leaf in leaves if any("-o" in p.opts for p in leaf.params)]


def command_in(words: list[str]) -> str:
    """Return the command that a line starts with."""
    return " ".join(words[:2]) if " ".join(words[:2]) in OUTPUTS else words[0]


def check(command: str, text: str, output: str = "json") -> Any:
    """Hold what a command printed to its schema; returns it."""
    document = [json.loads(line) for line in text.splitlines()] if output == "ndjson" else None
    document = json.loads(text) if document is None else document
    Draft202012Validator(schema_of(command)).validate(document)
    return document


def test_every_command_with_an_output_option_has_a_schema() -> None:
    assert commands_with_output() == list(OUTPUTS)


@pytest.mark.parametrize("command", OUTPUTS)
def test_a_schema_is_one(command: str) -> None:
    Draft202012Validator.check_schema(schema_of(command))


def test_the_reference_has_these_schemas_and_no_others() -> None:
    found = {f"schemas/{path.name}" for path in (FOLDER / "schemas").iterdir()}
    assert set(schema_files()) == found, "run `make reference`"


def test_every_column_of_dumps_has_a_kind() -> None:
    names = {*RECORD_COLUMNS, *BATCH_COLUMNS}.union(*INDEX_COLUMNS.values())
    assert names >= set(dump_log_columns._KINDS)


# -- what the commands print, of a session with a real broker

_SAMPLES = [
    (version, name)
    for version in VERSIONS
    for name, step in load_session(version).items()
    if command_in(step["args"]) in OUTPUTS and not step["stdin"]
]


@pytest.mark.parametrize(("version", "name"), _SAMPLES)
def test_answers_of_a_real_broker_are_as_the_schema_says(version: str, name: str) -> None:
    step = load_session(version)[name]
    command = command_in(step["args"])
    outcome = replay({**step, "args": [*step["args"], "-o", "json"]})
    if outcome.exit not in (exits.USAGE, exits.UNREACHABLE) and outcome.stdout:
        check(command, outcome.stdout.encode("latin-1").decode())


# -- of an embedded cluster


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    found = Shell(tmp_path_factory.mktemp("schemas"))
    found.ok("cluster", "start", "--port", "0")
    found.ok("topics", "create", "clicks", "-p", "2", "-c", "retention.ms=1000000")
    yield found
    found.ok("cluster", "destroy", "-y")


_RECORD = '{"key": "k", "value": "v", "headers": [{"key": "h", "value": "x"}, {"key": "n"}]}\n'
LINES = (
    Step("produce", "produce clicks --input ndjson", _RECORD.encode()),
    Step("produce", "produce clicks --acks 0", b"x\n"),
    Step("consume", "consume clicks -e"),
    Step("topics", "topics list --size"),
    Step("topics", "topics describe clicks --size --offsets"),
    Step("topics", "topics configs clicks --all --doc"),
    Step("configs", "configs describe --broker 1 --all"),
    Step("brokers", "brokers describe"),
    Step("brokers", "brokers log-dirs --replicas"),
    Step("brokers", "brokers log-dirs"),
    Step("brokers", "brokers metrics --match partition=1"),
    Step("brokers", "brokers metrics --match *BrokerTopicMetrics,name=BytesInPerSec:*"),
    Step("leaders", "leaders list"),
    Step("leaders", "leaders list --by-broker"),
    Step("explain", "explain partition clicks:0"),
    Step("offsets", "offsets get clicks"),
    Step("offsets", "offsets get clicks --at end"),
    Step("cluster", "cluster status"),
    Step("cluster", "cluster list"),
    Step("znode", "znode ls /brokers"),
    Step("znode", "znode get /brokers/ids/1"),
    Step("znode", "znode stat /brokers/ids/1"),
    Step("znode", "znode tree /brokers"),
    Step("znode", "znode create /schemas x"),
    Step("znode", "znode set /schemas y"),
    Step("znode", "znode get /schemas"),
    Step("znode", "znode delete /schemas -y"),
    Step("context", "context show"),
    Step("context", "context list"),
    Step("schema", "schema"),
)


@pytest.mark.slow
def test_what_commands_print_of_a_cluster_is_as_the_schema_says(shell: Shell) -> None:
    for line in LINES:
        words = line.args.split()
        text = shell.ok(*words, "-o", "json", stdin=(line.stdin or b"").decode())
        assert check(command_in(words), text) != [] or words[0] == "context", line.args
    shell.ok("context", "set", "here", "-b", "localhost:1", "--use")
    assert ["here"] == [
        row["name"] for row in check("context list", shell.ok("context", "list", "-o", "json"))
    ]
    check("context show", shell.ok("context", "show", "here", "-o", "json"))
    shell.ok("context", "delete", "here")


# -- of log directories

OFFLINE = (
    "logs dirs plain/data",
    "logs verify plain/data",
    "logs repair plain/data --dry-run",
    "logs diff plain/data/clicks-0 plain/data/clicks-0",
    "dump-log plain/data/clicks-0",
    "dump-log plain/data/clicks-0 --headers-only",
)


@pytest.mark.parametrize("line", OFFLINE)
def test_what_is_printed_of_logs_is_as_the_schema_says(line: str) -> None:
    words = line.split()
    _, out, _ = run_kctl([*words, "-o", "json"], GOLDEN)
    check(command_in(words), out.decode())


@pytest.mark.parametrize("suffix", ["log", *(key[1:] for key in INDEX_COLUMNS)])
def test_files_of_every_kind_are_dumped_as_the_schema_says(suffix: str) -> None:
    paths = sorted(GOLDEN.rglob(f"*.{suffix}"))
    assert paths
    for path in paths[:20]:
        code, out, _ = run_kctl(["dump-log", str(path), "-o", "json"], GOLDEN)
        if code == exits.OK:
            check("dump-log", out.decode())


def test_files_of_different_kinds_each_have_their_own_rows() -> None:
    segment = "plain/data/clicks-0/00000000000000000000"
    paths = [f"{segment}.{suffix}" for suffix in ("log", "timeindex", "index")]
    _, out, _ = run_kctl(["dump-log", *paths, "-o", "json"], GOLDEN)
    rows = check("dump-log", out.decode())
    assert ({"file", "offset", "position"}, paths[2]) == (set(rows[-1]), rows[-1]["file"])


def test_copies_that_differ_are_reported_as_the_schema_says(tmp_path: Path) -> None:
    source = GOLDEN / "plain/data/clicks-0"
    copy = shutil.copytree(source, tmp_path / "clicks-0")
    segment = min(copy.glob("*.log"))
    raw = bytearray(segment.read_bytes())
    raw[20] ^= 1
    segment.write_bytes(raw)
    _, out, _ = run_kctl(["logs", "diff", str(source), str(copy), "-o", "json"], GOLDEN)
    (row,) = check("logs diff", out.decode())
    assert row["left_batch"] is not None or row["damage"]


@pytest.mark.parametrize(
    ("words", "code"),
    [("topics", exits.USAGE), ("topics lsit", exits.USAGE), ("topics list -o csv", exits.USAGE)],
)
def test_what_has_no_schema_is_wrong_usage(words: str, code: int) -> None:
    assert code == run_kctl(["schema", *words.split()], GOLDEN)[0]


def test_a_schema_is_printed_as_it_is_kept() -> None:
    code, out, _ = run_kctl(["schema", "topics", "list"], GOLDEN)
    assert exits.OK == code
    assert schema_files()["schemas/topics-list.json"] == out.decode()


@pytest.mark.parametrize(
    ("words", "offered"),
    [("schema", list(NOUNS)), ("schema topics", ["list", "describe"]), ("schema dump-log", [])],
)
def test_nouns_and_then_verbs_are_offered(words: str, offered: list[str]) -> None:
    code, out, _ = run_kctl(["__complete", "outputs", *words.split()], GOLDEN)
    found = out.decode().split()
    assert exits.OK == code
    assert set(offered[:2]) <= set(found) and bool(offered) == bool(found)
