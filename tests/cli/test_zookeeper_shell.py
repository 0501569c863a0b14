"""`kctl compat zookeeper-shell` on an embedded cluster's store.

What is expected was printed by the shell of ZooKeeper 3.8.4 that Kafka 3.9.1 starts.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.shell import Shell

_CONNECTED = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n"
_CLOSED = "\nWATCHER::\n\nWatchedEvent state:Closed type:None path:null\n"
_NO_TTL = "ttl must be positive and cannot be larger than: 1099511627775"
_UNKNOWN_OPTION = "org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option"
_INVALID_ACL = "KeeperErrorCode = InvalidACL\nAcl is not valid : null\n"


class Znodes:
    """A store, and the shell on it below a root of its own."""

    def __init__(self, shell: Shell, address: str) -> None:
        self.shell = shell
        self.address = address

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the tool; the last line of stderr, which names the exit code, is checked."""
        done = self.shell.run("compat", "zookeeper-shell", self.address, *words, stdin=stdin)
        if done.returncode and "Exception in thread" not in done.stderr:
            *lines, last = done.stderr.splitlines(keepends=True)
            assert re.fullmatch(
                rf"\[[-0-9 :,]+\] ERROR Exiting JVM with code {done.returncode} "
                r"\(org\.apache\.zookeeper\.util\.ServiceUtils\)\n",
                last,
            )
            done.stderr = "".join(lines)
        return done

    def printed(self, *words: str) -> str:
        """Return what a command printed after it was connected."""
        done = self.run(*words)
        assert (0, "") == (done.returncode, done.stderr)
        head = f"Connecting to {self.address}\n{_CONNECTED}"
        assert done.stdout.startswith(head)
        return done.stdout.removeprefix(head)

    def lines(self, *lines: str) -> subprocess.CompletedProcess[str]:
        """Run commands of standard input; stdout is what follows the welcome."""
        done = self.run(stdin="".join(f"{line}\n" for line in lines))
        head = f"Connecting to {self.address}\nWelcome to ZooKeeper!\nJLine support is disabled\n"
        assert done.stdout.startswith(head)
        done.stdout = done.stdout.removeprefix(head)
        return done

    def create(self, path: str, *words: str) -> None:
        """Create a node."""
        assert f"Created {path}\n" == self.run("create", path, *words).stderr


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("shell"))
    shell.ok("cluster", "start", "--port", "0")
    yield shell
    shell.run("cluster", "stop")


@pytest.fixture
def znodes(store: Shell, request: pytest.FixtureRequest) -> Znodes:
    address = store.status()["zookeeper"]
    name = re.sub(r"\W", "-", request.node.name)
    Znodes(store, address).create(f"/{name}")
    return Znodes(store, f"{address}/{name}")


def test_nodes_are_created_listed_and_read(znodes: Znodes) -> None:
    znodes.create("/a")
    znodes.create("/a/b", "two words")
    znodes.create("/c", "x")
    assert "[a, c]\n" == znodes.printed("ls", "/")
    assert "/\n/a\n/c\n/a/b\n" == znodes.printed("ls", "-R", "/")
    assert "null\n" == znodes.printed("get", "/a")
    assert "two words\n" == znodes.printed("get", "/a/b")
    assert "3\n" == znodes.printed("getAllChildrenNumber", "/")
    assert "'world,'anyone\n: cdrwa\n" == znodes.printed("getAcl", "/a")
    assert "Sync is OK\n" == znodes.printed("sync", "/a")


def test_a_stat_names_versions_and_sizes(znodes: Znodes) -> None:
    znodes.create("/a", "x")
    assert "" == znodes.printed("set", "-v", "0", "/a", "long", "ignored")
    names = [line.split(" = ")[0] for line in znodes.printed("stat", "/a").splitlines()]
    assert names[:5] == ["cZxid", "ctime", "mZxid", "mtime", "pZxid"]
    lines = znodes.printed("get", "-s", "/a").splitlines()
    assert "long" == lines[0]
    assert lines[6:] == [
        *("cversion = 0", "dataVersion = 1", "aclVersion = 0"),
        *("ephemeralOwner = 0x0", "dataLength = 4", "numChildren = 0"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("get", "/nope"), "Node does not exist: /nope"),
        (("create", "/a"), "Node already exists: /a"),
        (("delete", "/a"), "Node not empty: /a"),
        (("delete", "-v", "9", "/a/b"), "version No is not valid : /a/b"),
    ],
)
def test_a_refused_operation_names_the_node(
    znodes: Znodes, words: tuple[str, ...], message: str
) -> None:
    znodes.create("/a")
    znodes.create("/a/b")
    done = znodes.run(*words)
    assert (1, f"{message}\n") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ls",), "ls [-s] [-w] [-R] path"),
        (("set", "/a"), "set [-s] [-v version] path data"),
        (("create",), "create [-s] [-e] [-c] [-t ttl] path [data] [acl]"),
        (("get", "a"), "Path must start with / character"),
        (("get", "/a/"), "Path must not end with / character"),
        (("get", ""), "Path length must be > 0"),
        (("get", "//a"), 'Invalid path string "//a" caused by empty node name specified @1'),
        (("ls", "/./x"), 'Invalid path string "/./x" caused by relative paths not allowed @1'),
        (
            ("ls", "-x", "/a"),
            f"{_UNKNOWN_OPTION}: -x",
        ),
        (
            ("set", "-v"),
            "org.apache.commons.cli.MissingArgumentException: Missing argument for option: v",
        ),
        (("deleteall", "-b", "x", "/a"), "-b argument must be an int value"),
        (("deleteall", "-b", "++5", "/a"), "-b argument must be an int value"),
        (("deleteall", "-b", str(1 << 31), "/a"), "-b argument must be an int value"),
        (("create", "-t", "+-5", "/a"), "-t argument must be a long value"),
        (("create", "-t", str(1 << 63), "/a"), "-t argument must be a long value"),
        (("create", "-t", "0", "/a"), _NO_TTL),
        (("create", "-t", str(1 << 40), "/a"), _NO_TTL),
        (("get", "--s", "/a"), f"{_UNKNOWN_OPTION}: --s"),
        (("set", "-sx", "/a", "y"), f"{_UNKNOWN_OPTION}: -sx"),
        (("create", "-st", "5"), "create [-s] [-e] [-c] [-t ttl] path [data] [acl]"),
        (("deleteall", "-b=", "/a"), "-b argument must be an int value"),
        (("create", "-t", "5", "-e", "/a"), "TTLs cannot be used with Ephemeral znodes"),
        (("redo", "1"), "Command index out of range"),
    ],
)
def test_a_wrong_call_does_not_connect(store: Shell, words: tuple[str, ...], message: str) -> None:
    done = Znodes(store, "127.0.0.1:1").run(*words)
    assert (1, "Connecting to 127.0.0.1:1\n") == (done.returncode, done.stdout)
    assert f"{message}\n" == done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "-v", "x", "/a", "y"), 'For input string: "x"'),
        (("set", "-v=", "/a", "y"), 'For input string: ""'),
        (("-timeout", "x", "ls", "/"), 'For input string: "x"'),
        (("redo", ""), "Zero length string"),
        (("redo", "0x"), 'For input string: "" under radix 16'),
        (("redo", "-08"), 'For input string: "-8" under radix 8'),
        (("redo", "0x+1"), "Sign character in wrong position"),
    ],
)
def test_a_number_that_is_none_ends_with_javas_trace(
    store: Shell, words: tuple[str, ...], message: str
) -> None:
    done = Znodes(store, "127.0.0.1:1").run(*words)
    assert 1 == done.returncode
    assert f'Exception in thread "main" java.lang.NumberFormatException: {message}\n' == done.stderr


def test_a_server_that_is_not_there_is_a_lost_connection(store: Shell) -> None:
    done = Znodes(store, "127.0.0.1:1").run("ls", "/a")
    assert (1, "Connecting to 127.0.0.1:1\n") == (done.returncode, done.stdout)
    assert "KeeperErrorCode = ConnectionLoss for /a\n" == done.stderr


def test_an_unknown_command_lists_the_known_ones(znodes: Znodes) -> None:
    done = znodes.run("nosuch", "/a")
    assert 127 == done.returncode
    usage, *_, last = done.stderr.splitlines()
    assert "ZooKeeper -server host:port cmd args" == usage
    assert "\tls [-s] [-w] [-R] path\n" in done.stderr
    assert "Command not found: Command not found nosuch" == last


def test_commands_come_from_standard_input(znodes: Znodes) -> None:
    done = znodes.lines('create /q "two words"', "get '/q'", "history", "redo 1", "nosuch", "quit")
    history = "0 - create /q \"two words\"\n1 - get '/q'\n2 - history\n"
    assert f"{_CONNECTED}two words\n{history}two words\n{_CLOSED}" == done.stdout
    assert 127 == done.returncode


def test_a_line_without_a_word_runs_the_command_before_it_again(znodes: Znodes) -> None:
    done = znodes.lines("printwatches", '"', "redo 1", "redo 0x0")
    assert (0, "No redoing redos\n") == (done.returncode, done.stderr)
    assert "printwatches is on\n" * 3 == done.stdout


def test_a_first_line_without_a_word_ends_with_javas_trace(znodes: Znodes) -> None:
    done = znodes.lines('"')
    assert 1 == done.returncode
    assert done.stderr.startswith('Exception in thread "main" java.lang.NullPointerException: ')


def test_a_line_of_blanks_is_no_command(znodes: Znodes) -> None:
    done = znodes.lines("", "  ")
    assert 127 == done.returncode
    assert "Command not found: Command not found  " == done.stderr.splitlines()[-1]


def test_watches_and_ephemeral_nodes_last_as_long_as_the_shell(znodes: Znodes) -> None:
    root = "/" + znodes.address.split("/", 1)[1]
    done = znodes.lines(
        "create -e /w x", "get -w /w", "set /w y", "ls -w /", "delete /w", "getEphemerals"
    )
    events = [
        f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{change}\n"
        for change in ("NodeDataChanged path:/w", "NodeChildrenChanged path:/")
    ]
    assert f"{_CONNECTED}x\n{events[0]}[w]\n{events[1]}[]\n" == done.stdout
    done = znodes.lines("printwatches off", "create -e /e x", "getEphemerals", "create /e/f")
    assert f"[{root}/e]\n" == done.stdout
    assert "Created /e\nEphemerals cannot have children: /e/f\n" == done.stderr
    assert "[]\n" == znodes.printed("ls", "/")


def test_a_closed_session_is_opened_by_connect(znodes: Znodes) -> None:
    done = znodes.lines("close", "ls /", "connect", "ls /")
    assert f"{_CONNECTED}{_CLOSED}Not connected\n{_CONNECTED}[]\n" == done.stdout
    done = znodes.lines("close", "printwatches", "close")
    assert f"{_CONNECTED}{_CLOSED}printwatches is on\nNot connected\nNot connected\n" == done.stdout


def test_a_refused_log_in_ends_the_session(znodes: Znodes) -> None:
    done = znodes.lines("addauth nope x", "ls /", "ls /", "connect", "ls /")
    failed = "\nWATCHER::\n\nWatchedEvent state:AuthFailed type:None path:null\n"
    # The response of the server may come before the next command or after it, as in Java's.
    refused = "Not connected\n" * (1 if done.stderr else 2)
    assert 0 == done.returncode
    assert done.stderr in ("", "KeeperErrorCode = AuthFailed for /\n")
    assert f"{_CONNECTED}{failed}{refused}{_CONNECTED}[]\n" == done.stdout


def test_the_root_of_the_server_stays(znodes: Znodes) -> None:
    znodes.create("/a")
    done = znodes.run("delete", "/")
    assert (1, "Arguments are not valid : /\n") == (done.returncode, done.stderr)
    done = znodes.run("deleteall", "/")
    left = "Failed to delete some node(s) in the subtree!\n"
    assert (0, left) == (done.returncode, done.stderr)
    assert "[]\n" == znodes.printed("ls", "/")


def test_kinds_of_nodes_are_asked_of_the_server(znodes: Znodes) -> None:
    for options in (("-c",), ("-t", "5"), ("-s", "-t", "5")):
        done = znodes.run("create", *options, "/a")
        assert (1, "KeeperErrorCode = Unimplemented for /a\n") == (done.returncode, done.stderr)


def test_help_of_ls_is_printed_before_its_usage(store: Shell) -> None:
    done = Znodes(store, "127.0.0.1:1").run("ls", "-?")
    assert done.stdout.endswith(
        "usage: ls [options] path\n -?   help\n -R   recurse\n -s   stat\n -w   watch\n"
    )
    assert (1, "ls [-s] [-w] [-R] path\n") == (done.returncode, done.stderr)


def test_a_deleted_ephemeral_node_is_not_listed(znodes: Znodes) -> None:
    done = znodes.lines("create -e /e", "create /f", "deleteall /e", "getEphemerals")
    assert f"{_CONNECTED}[]\n" == done.stdout


def test_older_forms_are_warned_of(znodes: Znodes) -> None:
    znodes.create("/a", "x")
    done = znodes.run("get", "/a", "true")
    assert done.stdout.endswith("x\n")
    assert (
        "'get path [watch]' has been deprecated. Please use 'get [-s] [-w] path' instead.\n"
        == done.stderr
    )
    done = znodes.run("delete", "/a", "7")
    assert 0 == done.returncode
    assert (
        "'delete path [version]' has been deprecated. "
        "Please use 'delete [-v version] path' instead.\n" == done.stderr
    )


def test_an_acl_without_an_entry_is_refused(znodes: Znodes) -> None:
    done = znodes.run("create", "/a", "x", "nobody")
    assert f"nobody does not have the form scheme:id:perm\n{_INVALID_ACL}" == done.stderr
    assert 1 == done.returncode
    assert _INVALID_ACL == znodes.run("create", "/a", "x", ",").stderr
    znodes.create("/a", "x", "world:anyone:cdrwa,")
    done = znodes.run("setAcl", "-R", "-s", "/a", "world:anyone:cdrwa")
    assert (0, "", "") == (done.returncode, done.stderr, done.stdout.partition(_CONNECTED)[2])


def test_the_options_of_the_shell_come_before_the_command(znodes: Znodes) -> None:
    assert "[]\n" == znodes.printed("-timeout", "5000", "-r", "ls", "/")


def test_without_an_address_the_usage_is_printed(store: Shell) -> None:
    done = store.run("compat", "zookeeper-shell")
    assert 1 == done.returncode
    assert done.stdout.startswith("USAGE: zookeeper-shell zookeeper_host:port[/path]")


def _event(name: str, path: str) -> str:
    return f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{name} path:{path}\n"


def test_a_quota_is_set_listed_and_deleted(znodes: Znodes) -> None:
    znodes.create("/q", "data")
    done = znodes.lines(
        "setquota -n 5 /q",
        "setquota -B 3 /q",
        "create /q/a x",
        "listquota /q",
        "get /zookeeper/quota/q/zookeeper_limits",
        "setquota -n 4 /q/a",
        "delquota -n /q",
        "listquota /q",
        "delquota /q",
        "ls -R /zookeeper",
        "delquota /q",
        "listquota /q",
    )
    # Below a chroot quotas are nodes of it, which no server counts: as with Java's shell.
    limits = "count=5,bytes=-1=;byteHardLimit=3;countHardLimit=-1"
    statistics = "Output stat for /q count=0,bytes=0\n"
    assert done.stdout == (
        f"{_CONNECTED}Output quota for /q {limits}\n{statistics}{limits}\n"
        f"Output quota for /q count=-1,bytes=-1=;byteHardLimit=3;countHardLimit=-1\n{statistics}"
        "/zookeeper\n/zookeeper/quota\nQuota does not exist for /q\n"
    )
    path = "absolute path is /zookeeper/quota/q/zookeeper_limits\n"
    parent = "/q/a has a parent /q which has a quota\n"
    gone = "quota for /q does not exist.\n"
    assert done.stderr == f"Created /q/a\n{path}{parent}{path}{path}{gone}"


def test_a_quota_warns_of_what_is_there_already(store: Shell) -> None:
    znodes = Znodes(store, store.status()["zookeeper"])
    done = znodes.lines(
        "create /full 12345",
        "create /full/a",
        "setquota -n 1 /full",
        "setquota -b 4 /full",
        "listquota /full",
        "delquota /full",
        "setquota -n 1 /full/a",
        "setquota -n 1 /full",
        "delquota /full/a",
        "deleteall /full",
    )
    count = "[Warning]: the count quota you create is less than the existing count:2\n"
    size = "[Warning]: the bytes quota you create is less than the existing bytes:5\n"
    limits = "count=1,bytes=4=;byteHardLimit=-1;countHardLimit=-1"
    listed = f"Output quota for /full {limits}\nOutput stat for /full count=2,bytes=5\n"
    assert f"{_CONNECTED}{count}{count}{size}{listed}" == done.stdout
    assert "/full has a child /full/a which has a quota\n" in done.stderr


@pytest.mark.parametrize(
    ("text", "at"), [("garbage", "1"), ("count=", "1"), (";count=1", "1"), ("=,count=1", "0")]
)
def test_limits_that_are_no_pairs_end_with_javas_trace(znodes: Znodes, text: str, at: str) -> None:
    done = znodes.lines(
        "create /q", "setquota -n 5 /q", f"set /zookeeper/quota/q/zookeeper_limits {text}",
        "listquota /q", "ls /",
    )  # fmt: skip
    length = int(at)
    message = f"Index {at} out of bounds for length {length}\n"
    assert done.stderr.endswith(
        f'Exception in thread "main" java.lang.ArrayIndexOutOfBoundsException: {message}'
    )
    assert (1, _CONNECTED) == (done.returncode, done.stdout)


def test_a_quota_without_statistics_shows_its_limits(znodes: Znodes) -> None:
    done = znodes.lines(
        "create /q", "setquota -n 5 /q", "delete /zookeeper/quota/q/zookeeper_stats",
        "listquota /q",
    )  # fmt: skip
    assert "Output quota for /q count=5," in done.stdout
    assert done.stderr.endswith("quota for /q does not exist.\n")


_GROUP = "org.apache.commons.cli.AlreadySelectedException: The option"
_SELECTED = "was specified but an option from this group has already been selected:"
_REQUIRED = "[-n num soft quota, -b bytes soft quota, -N num hard quota, -B bytes hard quota]"
_MIXED = "(mixing incremental and non-incremental modes is not allowed)"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("setquota", "-n", "x", "/q"),
            0,
            "NumberFormatException happens when parsing the option value",
        ),
        (
            ("setquota", "-N", str(1 << 31), "/q"),
            0,
            "NumberFormatException happens when parsing the option value",
        ),
        (("setquota", "-n", "0", "-n", "5", "/q"), 0, "the num quota must be greater than zero"),
        (
            ("setquota", "-b", "-1", "/q"),
            0,
            "the bytes quota must be greater than or equal to zero",
        ),
        (
            ("setquota", "-n", "1", "/zookeeper/quota/x"),
            0,
            "cannot set a quota under the path: /zookeeper/quota",
        ),
        (("setquota", "-n", "1", "q"), 1, "Path must start with / character"),
        (("setquota", "-n", "1"), 1, "setquota -n|-b|-N|-B val path"),
        (
            ("setquota", "/q"),
            1,
            f"org.apache.commons.cli.MissingOptionException: Missing required option: {_REQUIRED}",
        ),
        (("setquota", "-n", "1", "-B", "2", "/q"), 1, f"{_GROUP} 'B' {_SELECTED} 'n'"),
        (("delquota", "-bN", "/q"), 1, f"{_GROUP} 'N' {_SELECTED} 'b'"),
        (
            ("delquota", "/"),
            1,
            'Invalid path string "/zookeeper/quota//zookeeper_limits" caused by '
            "empty node name specified @17",
        ),
        (
            ("reconfig",),
            1,
            "reconfig [-s] [-v version] [[-file path] | [-members "
            "serverID=host:port1:port2;port3[,...]*]] | [-add "
            "serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
        ),
        (
            ("reconfig", "-add"),
            1,
            "org.apache.commons.cli.MissingArgumentException: Missing argument for option: add",
        ),
        (("reconfig", "-remove=1"), 1, f"{_UNKNOWN_OPTION}: -remove=1"),
        (
            ("reconfig", "-v", "x", "-remove", "1"),
            1,
            "-v must be followed by a long (configuration version)",
        ),
        (
            ("reconfig", "-remove", "1", "-members", "x"),
            1,
            f"Can't use -file or -members together with -add or -remove {_MIXED}",
        ),
        (
            ("reconfig", "-file", "a", "-members", "x"),
            1,
            "Can't use -file and -members together (conflicting non-incremental modes)",
        ),
        (
            ("addWatch", "-m", "NOPE", "/q"),
            1,
            "addWatch [-m mode] path # optional mode is one of [PERSISTENT, "
            "PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
        ),
        (("removewatches",), 1, "removewatches path [-c|-d|-a] [-l]"),
        (("removewatches", "q"), 1, "Path must start with / character"),
    ],
)
def test_a_wrong_call_of_quotas_watches_and_servers(
    store: Shell, words: tuple[str, ...], code: int, message: str
) -> None:
    done = Znodes(store, "127.0.0.1:1").run(*words)
    assert (code, f"{message}\n") == (done.returncode, done.stderr)


def test_persistent_watches_stay_until_they_are_taken_off(znodes: Znodes) -> None:
    done = znodes.lines(
        "create /w",
        "addWatch /w",
        "set /w 1",
        "set /w 2",
        "create /w/a",
        "addWatch -m persistent /w",
        "delete /w/a",
        "removewatches /w",
        "set /w 3",
        "get -w /w",
        "ls -w /w",
        "removewatches -a /w",
        "removewatches -d /w",
    )
    changed = _event("NodeDataChanged", "/w")
    assert done.stdout == (
        f"{_CONNECTED}{changed}{changed}{_event('NodeCreated', '/w/a')}"
        f"{_event('NodeChildrenChanged', '/w')}{_event('PersistentWatchRemoved', '/w')}3\n[]\n"
        f"{_event('DataWatchRemoved', '/w')}{_event('ChildWatchRemoved', '/w')}"
    )
    assert "Created /w\nCreated /w/a\nKeeperErrorCode = No such watcher for /w\n" == done.stderr
    assert 1 == done.returncode


def test_a_deleted_node_is_reported_once_to_two_watches(znodes: Znodes) -> None:
    done = znodes.lines("create /w x", "get -w /w", "ls -w /w", "delete /w")
    assert f"{_CONNECTED}x\n[]\n{_event('NodeDeleted', '/w')}" == done.stdout


def test_a_watch_of_no_path_ends_with_javas_trace(store: Shell) -> None:
    done = Znodes(store, "127.0.0.1:1").run("addWatch", "w")
    trace = "java.lang.IllegalArgumentException: Path must start with / character"
    assert (1, f'Exception in thread "main" {trace}\n') == (done.returncode, done.stderr)


def test_a_client_sees_what_it_is_and_one_server(znodes: Znodes) -> None:
    done = znodes.lines(
        "addauth digest u:p", "whoami x", "config", "config -c", "reconfig -remove 1"
    )
    assert f"{_CONNECTED}Auth scheme: User\nip: 127.0.0.1\ndigest: u\n\n \n" == done.stdout
    assert "KeeperErrorCode = Reconfig is disabled\n" == done.stderr
