"""What a newcomer reads who mistypes: what, why, what next; and the exit codes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl import exits
from tests.cluster.embedded import EmbeddedCluster
from tests.golden_dump import run_kctl

pytestmark = pytest.mark.xdist_group("messages")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path_factory.mktemp("messages") / "cluster")
    found.start()
    code, _, err = run_kctl(
        ["topics", "create", "clicks", "-c", "retention.ms=1000", "-b", found.address], Path.cwd()
    )
    assert 0 == code, err
    yield found
    found.destroy()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("topics describe clikcs", 1, "did you mean clicks?"),
        ("topics describe somewhere", 1, "`kctl topics list` shows"),
        ("topics list --match (", 2, "not a regular expression: '(': missing )"),
        ("topics list --timeout soon", 2, "'soon' is not a number."),
        ("topics create t -p many", 2, "'many' is not a whole number."),
        ("topics create t -r 9", 1, "`kctl brokers list`"),
        ("topics create clicks", 1, "--if-not-exists"),
        ("topics create t -c retention.ms=7d", 1, "7d is 604800000"),
        ("topics create t -c retnetion.ms=7", 1, "did you mean retention.ms?"),
        ("topics alter clicks --delete-config segmnet.ms", 1, "did you mean segment.ms?"),
        ("topics alter clicks -c segment.bytes=1g", 1, "1g is 1073741824"),
        ("topics delete clicks", 2, "Delete clicks with 1 partition of cluster "),
        ("topics delete clicks", 2, "needs a yes, and stdin is no terminal; nothing was changed"),
        ("configs describe --topic clicks no.such", 1, "topic clicks: there is no setting no.such"),
        ("configs describe --broker 1 num.io.thread", 1, "did you mean num.io.threads?"),
        ("configs set --topic clicks retention.ms=7d", 1, "7d is 604800000"),
        ("configs set --broker 1 broker.id=7", 1, "--all -o wide` shows what can be changed"),
        ("configs set --broker-logger 1 no.such=INFO", 1, "--broker-logger 1` shows the loggers"),
        ("configs unset --topic clicks no.such", 1, "there is no setting no.such"),
        ("records delete clicks --before 5 --dry-run", 1, "5 lies after the end, 0"),
        ("records delete clicks:0 --before end", 2, "0 records of 1 partition of cluster "),
        ("topics alter clicks -p 1", 1, "it has so many already"),
        ("topics alter clicks -p 0 -y", 2, "0 is not in the range"),
        ("offsets get", 2, "which topics? None is named"),
        ("offsets get --match (", 2, "not a regular expression"),
        ("offsets get --match cl*s", 1, "'cl.*s' matches as a shell's pattern"),
        ("topics describe --match c*", 1, "'c.*' matches as a shell's pattern"),
        ("topics alter clicks -p 1 -y", 1, "give a larger number"),
        ("topics create t -p 100001", 1, "INVALID_PARTITIONS"),
        ("brokers log-dirs --topic clikcs", 1, "did you mean clicks?"),
        ("brokers describe 7", 1, "`kctl brokers list` shows those that are"),
    ],
)
def test_what_is_wrong_and_what_next(
    cluster: EmbeddedCluster, words: str, code: int, said: str
) -> None:
    found, _, err = run_kctl([*words.split(), "-b", cluster.address], Path.cwd())
    assert (code, True) == (found, said in err), err
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("topics alter clicks --delete-config segment.ms", "was not set"),
        ("configs unset --topic clicks segment.ms", "was not set"),
        ("configs unset --broker 1 no.such", "was not set"),
        ("configs unset --topic clicks segment.ms retention.ms --dry-run", "would be changed"),
        ("configs describe --broker-defaults log.retention.ms", "KEY"),
        ("configs describe --broker 1 leader.replication.throttled.rate", "KEY"),
    ],
)
def test_what_was_not_set_is_no_failure(cluster: EmbeddedCluster, words: str, said: str) -> None:
    code, out, err = run_kctl([*words.split(), "-b", cluster.address], Path.cwd())
    assert (exits.OK, True) == (code, said in out.decode()), err


@pytest.mark.parametrize(
    "words",
    [
        "configs unset --topic clicks segment.ms",
        "topics alter clicks --delete-config segment.ms",
    ],
)
def test_a_command_that_takes_away_says_of_which_cluster(
    cluster: EmbeddedCluster, words: str
) -> None:
    _, _, err = run_kctl([*words.split(), "-b", cluster.address], Path.cwd())
    assert err.startswith("unset segment.ms of cluster ")
    assert f" at {cluster.address}\n" in err
    _, _, err = run_kctl([*words.split(), "--dry-run", "-b", cluster.address], Path.cwd())
    assert "" == err


def test_offsets_of_topics_that_match_are_shown_once(cluster: EmbeddedCluster) -> None:
    for words in ("--match c.*", "clicks --match c.*", "clicks:0 --match c.*"):
        line = ["offsets", "get", *words.split(), "-o", "csv", "-b", cluster.address]
        code, out, err = run_kctl(line, Path.cwd())
        assert (exits.OK, b"clicks,0,0,0,0") == (code, out.splitlines()[1]), err
        assert 2 == len(out.splitlines())


def test_a_key_for_plug_ins_is_noted(cluster: EmbeddedCluster) -> None:
    words = ["configs", "set", "--broker", "1", "-b", cluster.address]
    code, out, err = run_kctl([*words, "log.retention.sm=1"], Path.cwd())
    assert (exits.OK, True) == (code, "changed" in out.decode())
    assert "note: log.retention.sm is kept for plug-ins" in err
    assert "did you mean log.retention.ms?" in err
    assert "note" not in run_kctl([*words, "log.retention.ms=9000000"], Path.cwd())[2]


def test_a_noun_alone_prints_its_usage() -> None:
    code, out, err = run_kctl(["topics"], Path.cwd())
    assert (exits.USAGE, b"") == (code, out)
    assert err.startswith("Usage: kctl topics")
    assert "error" not in err


def test_a_cluster_that_runs_says_when_other_settings_count(cluster: EmbeddedCluster) -> None:
    words = ["cluster", "start", "--data", str(cluster.data)]
    assert "hint" not in run_kctl(words, Path.cwd())[2]
    code, out, err = run_kctl([*words, "--set", "num.partitions=3"], Path.cwd())
    assert (exits.FAILED, b"") == (code, out)
    assert "nothing was changed: it does not set num.partitions" in err
    assert "hint: other settings count from a start on: `kctl cluster stop" in err


def test_a_cluster_in_a_place_that_is_no_directory_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, _, err = run_kctl(["cluster", "start", "--data", str(tmp_path / "file")], tmp_path)
    assert exits.FAILED == code
    assert "Not a directory" in err
    assert "hint: choose another path" in err


def test_nothing_is_destroyed_without_a_yes(cluster: EmbeddedCluster) -> None:
    words = ["cluster", "destroy", "--data", str(cluster.data)]
    code, _, err = run_kctl(words, Path.cwd())
    assert (exits.USAGE, True) == (code, "hint: add -y to do it\n" in err)
    assert os.path.exists(cluster.data)


def test_a_topic_with_too_many_partitions_is_not_said_to_have_more(
    cluster: EmbeddedCluster,
) -> None:
    words = ["topics", "create", "t", "-p", "100001", "-b", cluster.address]
    assert "larger number" not in run_kctl(words, Path.cwd())[2]
