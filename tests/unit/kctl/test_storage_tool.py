"""`kafka-storage`: what it prints and writes, as the tools of 3.9.1 and 4.3.0 did."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from engine.host.memory import MemoryFiles
from engine.log.directory.bootstrap_snapshot import FeatureLevel, bootstrap_snapshot
from engine.log.directory.meta_properties import read_meta_properties
from kctl.compat.tools import STORAGE, run_tool

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
NODE = """
process.roles=broker,controller
node.id=1
log.dirs=/w/kraft-1,/w/kraft-2
"""
LEGACY = "broker.id=1\nlog.dirs=/w/kraft-1,/w/kraft-2\n"
#: Of a cluster of 4.3.0, in the order of its tool.
LEVELS = (
    ("metadata.version", 30),
    ("eligible.leader.replicas.version", 1),
    ("group.version", 1),
    ("share.version", 1),
    ("streams.version", 1),
    ("transaction.version", 2),
)


class Ended(NamedTuple):
    """What a call printed and returned."""

    code: int
    out: str
    err: str


class Tool:
    """The tool with the files of a machine."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.files = MemoryFiles()
        self.files.make_dir("/w")
        self.files.replace_file("/w/node", NODE.encode())
        self.files.replace_file("/w/legacy", LEGACY.encode())
        self._capsys = capsys

    def run(self, *words: str, four: bool = True) -> Ended:
        release = ("--kafka-version", "4.3") if four else ()
        code = run_tool(STORAGE, [*release, *words], files=self.files)
        return Ended(code, *self._capsys.readouterr())

    def format(self, *words: str, four: bool = True, node: str = "/w/node") -> Ended:
        return self.run("format", "-c", node, "-t", CLUSTER, *words, four=four)

    def has(self, directory: str, metadata: str) -> None:
        self.files.make_dir(directory)
        self.files.replace_file(f"{directory}/meta.properties", metadata.encode())


@pytest.fixture
def tool(capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(capsys)


def test_directories_are_formatted_and_then_shown(tool: Tool) -> None:
    unformatted = "Found problems:\n  /w/kraft-1 does not exist\n  /w/kraft-2 does not exist\n\n"
    assert (1, unformatted, "") == tool.run("info", "-c", "/w/node")
    assert (
        0,
        "Formatting metadata directory /w/kraft-1 with metadata.version 3.9-IV0.\n"
        "Formatting data directory /w/kraft-2 with metadata.version 3.9-IV0.\n",
        "",
    ) == tool.format(four=False)
    metas = [read_meta_properties(tool.files, f"/w/kraft-{n}/meta.properties") for n in (1, 2)]
    assert [(1, CLUSTER, 1)] * 2 == [meta[:3] for meta in metas]
    assert metas[0].directory_id != metas[1].directory_id
    info = tool.run("info", "-c", "/w/node")
    assert (0, "") == (info.code, info.err)
    assert info.out == (
        "Found log directories:\n  /w/kraft-1\n  /w/kraft-2\n\n"
        f"Found metadata: {{cluster.id={CLUSTER}, directory.id={metas[0].directory_id}, "
        "node.id=1, version=1}\n\n"
    )


def test_first_metadata_are_the_features_of_a_release(tool: Tool) -> None:
    rows = ", ".join(
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at "
        "version 0)"
        for name, level in LEVELS
    )
    first, *_ = tool.format().out.splitlines()
    expected = f"Bootstrap metadata: BootstrapMetadata(records=[{rows}], metadataVersionLevel=30"
    assert f"{expected}, source=format command)" == first
    written = tool.files.read_bytes("/w/kraft-1/bootstrap.checkpoint")
    timestamp_ms = int.from_bytes(written[27:35])
    levels = [FeatureLevel(*level) for level in LEVELS]
    assert bootstrap_snapshot(levels, timestamp_ms) == written


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        (("-r", "3.9"), [("metadata.version", 21)]),
        (("-f", "metadata.version=21"), [("metadata.version", 21)]),
        (
            ("-f", "group.version=1", "-f", "group.version=0", "-f", "share.version=0"),
            [row for row in LEVELS if row[0] not in ("group.version", "share.version")],
        ),
    ],
)
def test_levels_may_be_others(
    tool: Tool, words: tuple[str, ...], levels: list[tuple[str, int]]
) -> None:
    found = re.findall(r"name='([^']*)', featureLevel=(\d+)", tool.format(*words).out)
    assert levels == [(name, int(level)) for name, level in found]


def test_what_is_formatted_is_formatted_once(tool: Tool) -> None:
    tool.format()
    before = tool.files.read_bytes("/w/kraft-1/meta.properties")
    again = tool.format()
    assert (1, "") == (again.code, again.out)
    assert again.err == (
        "Log directory /w/kraft-1 is already formatted. Use --ignore-formatted to ignore this "
        "directory and format the others.\n"
    )
    nothing = "All of the log directories are already formatted.\n"
    assert (0, nothing, "") == tool.format("-g")
    tool.files.remove("/w/kraft-2/meta.properties")
    *_, last = tool.format("-g").out.splitlines()
    assert last.startswith("Formatting data directory /w/kraft-2 ")
    assert before == tool.files.read_bytes("/w/kraft-1/meta.properties")


def test_directories_of_another_node_or_cluster_are_left(tool: Tool) -> None:
    for fields, message in (
        ("node.id=1\ncluster.id=x", f"Expected {CLUSTER}, but read x"),
        (f"node.id=2\ncluster.id={CLUSTER}", "Stored node id 2 doesn't match previous node id 1"),
    ):
        tool.has("/w/kraft-1", f"version=1\n{fields}\n")
        ended = tool.format("-g")
        assert (1, "") == (ended.code, ended.out)
        assert ended.err.startswith('Exception in thread "main" java.lang.RuntimeException: ')
        assert message in ended.err
        assert not tool.files.exists("/w/kraft-2")


@pytest.mark.parametrize(
    ("words", "four", "message"),
    [
        (("-r", "9.9"), True, "Unknown metadata.version '9.9'. Supported metadata.version are: "),
        (("-r", "4.4"), True, "Unknown metadata.version '4.4'. Supported metadata.version are: "),
        (("-r", "9.9"), False, "Version 9.9 is not a valid version"),
        (("-r", "1.0"), False, "metadata.version 1.0-IV0 is too old to be supported."),
        (("-r", "3.2"), False, "Bootstrap metadata.version before 3.3-IV0 are not supported."),
        (("-f", "nope=1"), True, "Unsupported feature: nope. Supported features are: eligible."),
        (("-f", "nope=1"), False, "Supported features are: kraft.version, transaction.version"),
        (("-f", "transaction.version=1"), False, "is not served here"),
        (("-f", "kraft.version=1"), True, "a level of kraft.version is not served here"),
        (("-f", "group.version=9"), True, "No feature:group.version with feature level 9"),
        (("-f", "metadata.version=99"), True, "Valid feature levels are from 7 to 31."),
        (("-f", "metadata.version=31"), True, "metadata.version 31 is not stable"),
        (("-r", "4.0", "-f", "metadata.version=30"), True, "to avoid ambiguity."),
        (
            ("-r", "3.9", "-f", "eligible.leader.replicas.version=1"),
            True,
            "could not be set to 1 because it depends on metadata.version level 23",
        ),
        (("-f", "garbage"), True, "RuntimeException: Can't parse feature=level string garbage"),
        (("-s",), True, "--standalone is not served here"),
        (("-S", "SCRAM-SHA-256=[name=a,password=b]"), True, "--add-scram is not served here"),
    ],
)
def test_what_cannot_be_formatted_is_refused(
    tool: Tool, words: tuple[str, ...], four: bool, message: str
) -> None:
    ended = tool.format(*words, four=four)
    assert (1, "") == (ended.code, ended.out)
    assert message in ended.err
    assert not tool.files.exists("/w/kraft-1")


def test_a_legacy_node_is_not_formatted(tool: Tool) -> None:
    assert "legacy cluster. Formatting is only" in tool.format(four=False, node="/w/legacy").err
    missing = 'Missing required configuration "process.roles" which has no default value.'
    assert missing in tool.format(node="/w/legacy").err
    assert "NoSuchFileException: none" in tool.format(node="none").err
    tool.files.replace_file("/w/nobody", b"process.roles=broker\n")
    assert '"node.id" which has no default value' in tool.format(node="/w/nobody").err
    assert "Missing configuration `node.id`" in tool.format(node="/w/nobody", four=False).err


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("version=2\n", "Unknown meta.properties version number 2"),
        ("version=x\n", "Invalid meta.properties version string 'x'"),
        ("version=1\nnode.id=x\ncluster.id=c\n", "Unable to read node.id as a base-10 number."),
        ("version=1\nnode.id=1\n", "cluster.id was not found."),
        ("version=1\ncluster.id=c\n", "Failed to find node.id"),
        (
            "version=1\nnode.id=1\ncluster.id=c\ndirectory.id=zz\n",
            "Unable to read directory.id as a Uuid: Input string `zz` decoded as 1 bytes",
        ),
    ],
)
def test_metadata_that_cannot_be_read_is_a_problem(tool: Tool, metadata: str, problem: str) -> None:
    tool.has("/w/kraft-1", metadata)
    info = tool.run("info", "-c", "/w/node")
    assert 1 == info.code
    assert f"  Error loading /w/kraft-1/meta.properties: {problem}" in info.out
    assert info.err.startswith(f"java.lang.RuntimeException: {problem}")
    tool.has("/w/kraft-2", metadata)
    refused = tool.format()
    assert refused.out.startswith("I/O error trying to read log directory /w/kraft-1. Ignoring...")
    assert (1, "No available log directories to format.\n") == (refused.code, refused.err)


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("node.id=1\ncluster.id=a", "node.id=1\ncluster.id=b", "Mismatched cluster IDs"),
        ("node.id=1\ncluster.id=a", "node.id=2\ncluster.id=a", "Mismatched node IDs"),
    ],
)
def test_directories_that_do_not_belong_together_are_a_problem(
    tool: Tool, first: str, second: str, problem: str
) -> None:
    tool.has("/w/kraft-1", f"version=1\n{first}\n")
    tool.has("/w/kraft-2", f"version=1\n{second}\n")
    info = tool.run("info", "-c", "/w/node")
    found = f"Found problem:\n  {problem} between storage directories.\n\n"
    assert (1, True) == (info.code, info.out.endswith(found))


def test_directories_of_the_other_mode_are_a_problem(tool: Tool) -> None:
    tool.has("/w/kraft-1", "broker.id=1\ncluster.id=c\n")
    tool.has("/w/kraft-2", "")
    info = tool.run("info", "-c", "/w/node")
    assert "Found metadata: {broker.id=1, cluster.id=c, version=0}\n" in info.out
    assert "appears to be for a cluster in KRaft mode, but the directories are" in info.out
    assert "legacy mode" not in tool.run("info", "-c", "/w/legacy", four=False).out
    tool.has("/w/kraft-1", "version=1\nnode.id=1\ncluster.id=c\n")
    info = tool.run("info", "-c", "/w/legacy", four=False)
    assert "appears to be for a legacy cluster, but the directories are formatted" in info.out


def test_a_file_in_place_of_a_directory_is_a_problem(tool: Tool) -> None:
    tool.files.replace_file("/w/kraft-1", b"")
    assert "  /w/kraft-1 is not a directory\n" in tool.run("info", "-c", "/w/node").out
    formatted = tool.format()
    assert formatted.out.startswith("I/O error trying to read log directory /w/kraft-1. Ignoring")
    assert tool.files.exists("/w/kraft-2/meta.properties")


def test_features_of_releases_are_shown(tool: Tool) -> None:
    assert "metadata.version=21 (3.9)\n" in tool.run("version-mapping", "-r", "3.9").out
    ended = tool.run("feature-dependencies", "-f", "eligible.leader.replicas.version=1")
    assert ended.out.endswith("    metadata.version=23 (4.0-IV1)\n")
    assert (1, "", "Unknown feature: no\n") == tool.run("feature-dependencies", "-f", "no=1")
    assert "invalid choice: 'version-mapping'" in tool.run("version-mapping", four=False).err
    ids = {tool.run("random-uuid").out for _ in range(3)}
    assert 3 == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n", one) for one in ids)


MISSING = (
    "Missing configuration `node.id` which is required when `process.roles` is defined (i.e. when "
    "running in KRaft mode)."
)
NO_DIRECTORY = (
    "requirement failed: At least one log directory must be defined via log.dirs or log.dir."
)
NEGATIVE = "Invalid value -1 for configuration node.id: Value must be at least 0"
EMPTY = "must not be empty. Valid values include: any non-empty value"


def no_number(text: str, key: str) -> str:
    return f"Invalid value {text} for configuration {key}: Not a number of type INT"


@pytest.mark.parametrize(
    ("settings", "of_three", "of_four"),
    [
        ("node.id=abc", no_number("abc", "broker.id"), None),
        ("node.id=99999999999", no_number("99999999999", "broker.id"), None),
        ("node.id=", no_number("", "broker.id"), None),
        ("node.id=abc\nbroker.id=1", no_number("abc", "node.id"), None),
        (
            "node.id=2\nbroker.id=1",
            "You must set `node.id` to the same value as `broker.id`.",
            None,
        ),
        ("node.id=-1", MISSING, NEGATIVE),
        ("node.id=1\nlog.dirs=", NO_DIRECTORY, f"Configuration 'log.dirs' {EMPTY}"),
        (
            "node.id=1\nlog.dirs=,",
            NO_DIRECTORY,
            "Configuration 'log.dirs' values must not be empty.",
        ),
        ("node.id=1\nlog.dir=", NO_DIRECTORY, f"Configuration 'log.dir' {EMPTY}"),
    ],
)
def test_settings_that_no_node_starts_with_format_nothing(
    tool: Tool, settings: str, of_three: str, of_four: str | None
) -> None:
    directory = "" if "log.dir" in settings else "\nlog.dirs=/w/kraft-1"
    node = f"process.roles=broker\n{settings}{directory}\n"
    tool.files.replace_file("/w/odd", node.encode())
    for is_four, expected in ((False, of_three), (True, of_four or of_three)):
        found = tool.format(node="/w/odd", four=is_four)
        assert (1, "") == (found.code, found.out)
        assert expected in found.err
    assert not tool.files.exists("/w/kraft-1")


def test_an_empty_entry_of_log_dirs_is_passed_over_until_4_0(tool: Tool) -> None:
    tool.files.replace_file("/w/odd", NODE.replace("1,/w", "1,,/w").encode())
    assert 0 == tool.format(node="/w/odd", four=False).code
    found = tool.run("info", "-c", "/w/odd")
    assert (1, True) == (found.code, "'log.dirs' values must not be empty" in found.err)


@pytest.mark.parametrize("kind", ["damaged", "folder", "below a file"])
def test_a_directory_that_cannot_be_read_is_passed_over(tool: Tool, kind: str) -> None:
    first = "/w/kraft-1"
    if kind == "damaged":
        tool.has(first, "junk=\\u00\n")
    elif kind == "folder":
        tool.files.make_dir(f"{first}/meta.properties")
    else:
        tool.files.replace_file(first, b"")
        first = "/w/kraft-1/x"
        tool.files.replace_file("/w/node", NODE.replace("/w/kraft-1", first).encode())
    found = tool.format(four=False)
    assert (
        0,
        f"I/O error trying to read log directory {first}. Ignoring...\n"
        "Formatting data directory /w/kraft-2 with metadata.version 3.9-IV0.\n",
    ) == (found.code, found.out)
    if kind != "below a file":
        shown = tool.run("info", "-c", "/w/node", four=False)
        assert (1, True) == (shown.code, shown.err.startswith("Exception in thread"))
