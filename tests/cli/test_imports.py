"""What the commands import: the table that says which packages each of them pays for."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kctl.app import NOUNS
from tests.cli.shell import KCTL, Shell

pytestmark = [pytest.mark.xdist_group("imports"), pytest.mark.slow]
ROOT = Path(__file__).parent.parent.parent

#: What takes longer to import than a command may take for nothing; `engine.*` are rooms of ours.
HEAVY = frozenset(
    (
        *("typer", "rich", "tabulate", "wcwidth", "yaml", "jsonpath", "jsonschema", "fastavro"),
        *("numpy", "numba", "llvmlite", "pandas", "pyarrow", "pyspark", "py4j", "google"),
        *("kazoo", "uvloop", "cramjam", "xxhash", "fastcrc", "grpc_tools"),
        *("asyncio", "concurrent", "ssl", "sqlite3", "decimal", "fractions", "statistics"),
        *("logging", "multiprocessing", "http", "email", "csv", "json", "hashlib", "hmac"),
        *("html", "xml", "zipfile", "tempfile", "random", "unittest", "importlib.metadata"),
        *("engine.broker", "engine.controller", "engine.config.broker_config", "engine.log"),
        *("engine.records", "engine.wire"),
    )
)

#: What `kctl/render/aligner.py` keeps tabulate from, and `kctl/arrow_alone.py` pyarrow.
STOOD_IN = ("wcwidth", "importlib.metadata", "pandas")
_LOGS = "tests/golden/plain/data"
_PARTITION = f"{_LOGS}/clicks-0"
_SEGMENT = f"{_PARTITION}/00000000000000000000.log"

#: Words of a command -> what of `HEAVY` it imports. json is there to find the embedded cluster,
#: where no -b says which one is meant; html is tabulate's, ssl and logging are kazoo's.
TABLE = {
    "--help": "",
    "--version": "",
    "completions bash": "engine.records engine.wire fastcrc typer",
    "schema": "typer",
    "schema topics list": "engine.wire json typer",
    "spark-report list": "typer",
    "topics --help": "typer",
    "configs --help": "typer",
    "consume --help": "typer",
    "cluster --help": "typer",
    "demo --help": "typer",
    "znode --help": "typer",
    "topics list": "engine.wire json typer",
    "topics list -o json": "engine.wire json typer",
    "topics list -o csv": "csv engine.wire json typer",
    "topics list -o yaml": "engine.wire json typer yaml",
    "topics describe clicks": "engine.wire json typer",
    "topics create new": "engine.wire json typer",
    "topics create newer -o name": "engine.wire json typer",
    "topics alter spare -c retention.ms=7": "engine.wire json typer",
    "topics delete gone -y": "engine.wire json typer",
    "topics configs clicks": "engine.wire json typer",
    "configs describe --topic clicks": "engine.wire json typer",
    "configs set --topic spare retention.ms=8": "engine.wire json typer",
    "configs unset --topic spare retention.ms": "engine.wire json typer",
    "produce spare": "engine.records engine.wire fastcrc json typer",
    "produce packed -z lz4": "cramjam engine.records engine.wire fastcrc json typer xxhash",
    "consume clicks -e": "engine.records engine.wire fastcrc json typer",
    "consume packed -e": "engine.records engine.wire fastcrc json typer xxhash",
    "consume clicks -e -o ndjson": "engine.records engine.wire fastcrc json typer",
    "consume clicks -e -o table": "engine.records engine.wire fastcrc json typer",
    "perf --help": "typer",
    "copy --help": "typer",
    "offsets get clicks": "engine.wire json typer",
    "groups list": "engine.wire json typer",
    "transactions list": "engine.wire json typer",
    "records delete spare --before 0 -y": "engine.wire json typer",
    "apply --help": "typer",
    "apply -f {state} -y": "engine.wire hashlib hmac json random typer yaml",
    "diff -f {state}": "engine.wire hashlib hmac json typer yaml",
    "export": "engine.wire hashlib hmac json typer yaml",
    "acls list": "engine.wire json typer",
    "acls check a read topic:t": "engine.wire json typer",
    "acls --help": "typer",
    "audit --help": "typer",
    "users list": "engine.wire hashlib hmac json typer",
    "users --help": "typer",
    "tokens --help": "typer",
    "quotas list": "engine.wire json typer",
    "quotas --help": "typer",
    "certs --help": "typer",
    "compat --help": "typer",
    "compat kafka-leader-election --version": "engine.wire json",
    "compat kafka-consumer-groups --version": "engine.wire json",
    "compat kafka-reassign-partitions --version": "engine.wire json",
    "compat kafka-reassign-partitions --list --bootstrap-server {cluster}": "engine.wire json",
    "features list": "engine.wire json typer",
    "features --help": "typer",
    "quorum --help": "typer",
    "leaders list": "engine.wire json typer",
    "reassign status": "engine.wire json typer",
    "check": "engine.wire json typer",
    "report cluster --help": "typer",
    "report cluster --interval 1s -o json": (
        "engine.log engine.records engine.wire fastcrc json typer"
    ),
    "top --help": "typer",
    "top --every 1s -o json": "engine.wire json typer",
    "events --help": "typer",
    "exporter --help": "typer",
    "explain partition clicks:0": ("engine.wire hashlib json kazoo logging random ssl typer"),
    "retention plan clicks": ("engine.log engine.records engine.wire fastcrc json typer"),
    "retention plan --dir {logs}": ("engine.log engine.records engine.wire fastcrc json typer"),
    "retention run": "engine.log engine.records engine.wire json typer",
    "compact status": "engine.log engine.records engine.wire json typer",
    "compact run": "engine.log engine.records engine.wire json typer",
    "compact plan clicks --set cleanup.policy=compact": (
        "engine.log engine.records engine.wire fastcrc hashlib json typer"
    ),
    "compact plan --dir {logs}": (
        "engine.broker engine.log engine.records fastcrc hashlib json logging typer"
    ),
    "brokers list": "engine.wire json typer",
    "brokers describe": "engine.wire json typer",
    "brokers log-dirs": "engine.wire json typer",
    "brokers api-versions": "engine.wire json typer",
    "cluster start": "engine.broker engine.config.broker_config engine.log json",
    "cluster status": "engine.log engine.wire json logging typer",
    "cluster list": "engine.log json typer",
    "cluster resume --help": "typer",
    "cluster restart 1": "engine.log json typer",
    "znode ls /": "hashlib json kazoo logging random ssl typer",
    "znode get /brokers/ids/1": "hashlib json kazoo logging random ssl typer",
    "znode create /new x": "hashlib json kazoo logging random ssl typer",
    "znode delete /gone -y": "hashlib json kazoo logging random ssl typer",
    "topics list -o markdown": "engine.wire html json tabulate typer",
    "consume clicks -e -b {cluster}": "engine.records engine.wire fastcrc typer",
    "context list": "typer",
    "context show": "json typer",
    "dump-log {segment}": "engine.log engine.records fastcrc",
    "dump-log --files {segment} --print-data-log": "engine.log engine.records fastcrc",
    "dump-log {segment} -o ndjson": "engine.log engine.records fastcrc json",
    "dump-log {segment} -o csv": "csv engine.log engine.records fastcrc json",
    "logs dirs {logs}": "engine.log engine.records fastcrc json typer",
    "logs verify {logs}": "engine.log engine.records fastcrc json typer",
    "logs repair {logs} --dry-run": "engine.log engine.records fastcrc json typer",
    "logs diff {part} {part}": "engine.log engine.records fastcrc json typer",
    "replay {part} --to spare --partition 0 --speed max": (
        "engine.log engine.records engine.wire fastcrc json typer"
    ),
    "cluster logs": "engine.log json typer",
    "context --help": "typer",
    "__complete topics topics describe": "engine.wire json",
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    found = Shell(tmp_path_factory.mktemp("imports"))
    found.ok(
        *("cluster", "start", "--port", "0", "--set", "super.users=User:ANONYMOUS"),
        *("--set", "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"),
    )
    found.ok("topics", "create", "clicks", "packed", "spare", "gone")
    found.ok("produce", "clicks", stdin="a\n")
    found.ok("produce", "packed", "-z", "lz4", stdin="a\n")
    found.ok("znode", "create", "/gone")
    (found.home / "state.yaml").write_text("version: 1\ntopics: {spare: {}}\n")
    yield found
    found.ok("cluster", "destroy", "-y")


def imported_by(
    command: list[str],
    environment: dict[str, str],
    stdin: str = "",
    heavy: Iterable[str] = HEAVY,
) -> set[str]:
    """Return what a process imports, of HEAVY or others."""
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPROFILEIMPORTTIME": "1"},
        cwd=ROOT,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    names = {line.rpartition("|")[2].strip() for line in lines}
    others = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert not others, others
    return {one for one in heavy if _is_imported(one, names)}


def _is_imported(heavy: str, names: set[str]) -> bool:
    # Of what something else stood in for, only the name was looked up.
    return any(
        name.startswith(f"{heavy}.") or (name == heavy and heavy not in STOOD_IN) for name in names
    )


@pytest.fixture(scope="module")
def address(shell: Shell) -> str:
    """Return the cluster's address."""
    return str(shell.status()["bootstrap_servers"])


@pytest.mark.parametrize("line", TABLE)
def test_a_command_imports_what_the_table_says(shell: Shell, address: str, line: str) -> None:
    state = str(shell.home / "state.yaml")
    words = line.format(
        cluster=address, logs=_LOGS, part=_PARTITION, segment=_SEGMENT, state=state
    ).split()
    # A completion ends by its budget, which a busy machine may use up before all is imported.
    environment = {**shell.environment, "KCTL_COMPLETION_MS": "60000"}
    found = imported_by([*KCTL, *words], environment, stdin="a\n")
    assert TABLE[line].split() == sorted(found)


#: What Typer and others import for what a single answer does not use.
UNUSED = {
    *("difflib", "pathlib", "platform", "shutil", "subprocess", "traceback", "urllib.parse"),
    *("uuid", "encodings.idna", "atexit", "html", "tabulate", "textwrap", "dataclasses"),
    *("engine.client.sasl", "engine.host.tls", "engine.cluster.plan", "engine.cluster.halts"),
    *("engine.assignors", "engine.client.topic_admin", "engine.naming"),
}


@pytest.mark.parametrize(
    "line",
    [
        *("topics --help", "topics list --help", "topics list", "topics describe clicks"),
        *("offsets get clicks", "groups list", "brokers list", "configs describe --topic clicks"),
        *("topics list -o name -b {address}", "brokers list -b {address}"),
    ],
)
def test_a_single_answer_imports_nothing_that_it_does_not_use(
    shell: Shell, address: str, line: str
) -> None:
    unused = UNUSED - {"shutil", "textwrap"} if line.endswith("--help") else UNUSED
    if "-b" in line:
        # What says whether an embedded cluster runs needs the former, other lines of brokers these.
        unused = unused | {"engine.host.ports", "engine.client.cluster_admin"}
    words = line.format(address=address).split()
    assert set() == imported_by([*KCTL, *words], shell.environment, heavy=unused)


def test_a_table_of_wide_characters_imports_their_widths(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("context", "set", "漢字", "-b", "localhost:1")
    found = imported_by([*KCTL, "context", "list"], shell.environment)
    assert {"wcwidth", "yaml"} <= found


def test_a_query_in_this_process_imports_no_pandas(tmp_path: Path) -> None:
    query = "select topic, count(*), max(timestamp), min(key) from records group by all"
    words = ["spark-sql", "--engine", "local", query, _LOGS, "-o", "json"]
    found = imported_by([*KCTL, *words], Shell(tmp_path).environment)
    assert "pyarrow" in found
    assert "pandas" not in found


def test_every_noun_that_can_be_tried_is_in_the_table() -> None:
    # Spark starts a machine of its own; `broker run` does not end; a simulation is brokers.
    tried = {line.split()[0] for line in TABLE}
    assert set(NOUNS) - {"spark-export", "spark-sql", "spark-shell", "broker", "sim"} <= tried
