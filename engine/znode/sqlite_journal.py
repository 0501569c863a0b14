"""The durable side of an embedded store: one SQLite file, one SQLite transaction per zxid.

```
nodes      path, data, czxid, mzxid, pzxid, ctime_ms, mtime_ms, version, created_count, owner
sessions   id, timeout_ms
progress   the last zxid
secret     the secret of the passwords of sessions
acls       path, czxid, version, acl: of nodes that have one of their own, as JSON
```

A commit returns when the write-ahead log is synced (synchronous=FULL); a crash at any point
leaves a prefix of the transactions (Z4). The file is locked while it is open, so that no second
store writes to it. It is for its owner alone, as it has credentials of users; SQLite gives the
files that it makes itself the same mode.

After a failure nothing more is accepted: the state after a failed sync is unknown (L9, D20).
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Mapping

from engine.host.private_file import make_private
from engine.znode.errors import ZnodeStoreDamaged, ZnodeStoreFailed
from engine.znode.journal import Stored
from engine.znode.model import OPEN_ACL, NodeAclEntry
from engine.znode.tree import Node

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE nodes (
  path TEXT PRIMARY KEY, data BLOB, czxid INTEGER, mzxid INTEGER, pzxid INTEGER,
  ctime_ms INTEGER, mtime_ms INTEGER, version INTEGER, created_count INTEGER, owner INTEGER
) WITHOUT ROWID;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, timeout_ms INTEGER);
CREATE TABLE progress (one INTEGER PRIMARY KEY CHECK (one = 1), zxid INTEGER);
INSERT INTO progress VALUES (1, 0);
"""
#: Files of earlier releases have the same version but no such table; those releases ignore it.
_SECRET_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY CHECK (one = 1), value BLOB)"
)
#: Likewise: earlier releases ignore the ACLs, and leave the rows of nodes that they delete. Such
#: a row has another czxid than a later node at the path.
_ACL_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS acls "
    "(path TEXT PRIMARY KEY, czxid INTEGER, version INTEGER, acl TEXT) WITHOUT ROWID"
)
_PUT_ACL = "INSERT OR REPLACE INTO acls VALUES (?, ?, ?, ?)"
#: How many fields of a node are in the table of nodes: all but those of its ACL.
_COLUMNS = 9
_PUT_NODE = "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


#: SQLite's codes for a file that is damaged, or is not a database of this engine.
_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR))
_HINTS = {
    sqlite3.SQLITE_READONLY: "make the file and its folder writable for the user that runs this",
    sqlite3.SQLITE_CANTOPEN: "make the file and its folder writable for the user that runs this",
    sqlite3.SQLITE_BUSY: "another process has it open: stop that, or use another directory",
    sqlite3.SQLITE_FULL: "make room on the disk",
}
_PRIMARY_CODE = 0xFF


def failure(path: str, operation: str, error: sqlite3.Error) -> ZnodeStoreFailed:
    """Return the engine's error, with its remedy, for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY_CODE
    if code in _DAMAGED:
        damaged = ZnodeStoreDamaged(path, operation, str(error))
        folder = posixpath.dirname(path)
        damaged.hint = f"`kctl cluster repair --data {folder}` writes it again from the logs"
        return damaged
    failed = ZnodeStoreFailed(path, operation, str(error))
    failed.hint = _HINTS.get(code)
    return failed


class SqliteJournal:
    """A journal in a file of SQLite's format."""

    def __init__(self, path: str) -> None:
        """Open or create the file; raises ZnodeStoreFailed."""
        self._path = path
        #: Paths of nodes with a row in the table of ACLs: only these need a deletion there.
        self._with_acl: set[str] = set()
        make_private(path)
        try:
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise failure(path, "open", error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise failure(path, "open", error) from error
        except BaseException:
            self._database.close()
            raise

    def load(self) -> Stored:
        """Return the state after the committed transactions."""
        try:
            execute = self._database.execute
            nodes = [(path, Node(*fields)) for path, *fields in execute("SELECT * FROM nodes")]
            acls = {row[0]: row[1:] for row in execute("SELECT * FROM acls")}
            sessions = dict(execute("SELECT id, timeout_ms FROM sessions").fetchall())
            (zxid,) = execute("SELECT zxid FROM progress").fetchone()
            secret = execute("SELECT value FROM secret").fetchone()
        except sqlite3.Error as error:
            raise failure(self._path, "read", error) from error
        self._with_acl = set(acls)
        if acls:
            nodes = [(path, _node_with_acl(node, acls.get(path))) for path, node in nodes]
        return Stored(nodes, sessions, zxid, b"" if secret is None else secret[0])

    def commit(
        self, zxid: int, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Make one transaction durable atomically; None removes a node or session."""
        execute = self._database.execute
        try:
            execute("BEGIN")
            for path, node in nodes.items():
                if node is None:
                    execute("DELETE FROM nodes WHERE path = ?", (path,))
                else:
                    execute(_PUT_NODE, (path, *node[:_COLUMNS]))
                self._commit_acl(path, node)
            for session_id, timeout_ms in sessions.items():
                if timeout_ms is None:
                    execute("DELETE FROM sessions WHERE id = ?", (session_id,))
                else:
                    execute("INSERT INTO sessions VALUES (?, ?)", (session_id, timeout_ms))
            execute("UPDATE progress SET zxid = ?", (zxid,))
            execute("COMMIT")
        except sqlite3.Error as error:
            raise failure(self._path, "write", error) from error

    def _commit_acl(self, path: str, node: Node | None) -> None:
        """Store the ACL of a node, if it is not the default one."""
        if node is not None and (node.acl != OPEN_ACL or node.acl_version):
            row = (path, node.czxid, node.acl_version, json.dumps(node.acl))
            self._database.execute(_PUT_ACL, row)
            self._with_acl.add(path)
        elif path in self._with_acl:
            self._database.execute("DELETE FROM acls WHERE path = ?", (path,))
            self._with_acl.discard(path)

    def keep_secret(self, secret: bytes) -> None:
        """Make the secret of session passwords durable; it belongs to no transaction."""
        try:
            self._database.execute("INSERT OR REPLACE INTO secret VALUES (1, ?)", (secret,))
        except sqlite3.Error as error:
            raise failure(self._path, "write", error) from error

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        self._database.close()

    def _prepare(self) -> None:
        """Lock the file and create its tables, or raise if it has another schema version."""
        execute = self._database.execute
        # No other process may open the file, and no shared memory is needed for the WAL.
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        # Taking the lock now refuses a second store at its start and not at its first write.
        execute("BEGIN IMMEDIATE")
        (version,) = execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in _SCHEMA.split(";"):
                execute(statement)
            execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        elif version != _SCHEMA_VERSION:
            raise ZnodeStoreFailed(
                self._path, "open", f"its layout is version {version}, not {_SCHEMA_VERSION}"
            )
        execute(_SECRET_SCHEMA)
        execute(_ACL_SCHEMA)
        execute("COMMIT")


def _node_with_acl(node: Node, row: tuple[int, int, str] | None) -> Node:
    """Return a node with its stored ACL, unless that belongs to an earlier node at the path."""
    if row is None or row[0] != node.czxid:
        return node
    _, version, text = row
    acl = tuple(NodeAclEntry(*entry) for entry in json.loads(text))
    return node._replace(acl=acl, acl_version=version)
