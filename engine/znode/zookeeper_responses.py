"""The store's responses to ZooKeeper's requests: one function for each type.

```
refused operation of a multi     codes: 0 for those before it, its own, −2 for those after it
exists, getData with a watch     set before the read; for an absent node only by exists
exists of a node                 needs READ, as getData does (since ZooKeeper 3.8.4)
setWatches                       changes since then are reported at once, other watches are set
an event                         sent to clients that may read the node, or a deleted one's parent
reconfig                         refused: RECONFIGDISABLED (−123), ZooKeeper's default
```

| watch set again for | node exists | node is absent |
|---|---|---|
| data | reported if its mzxid is newer than the client's | reported: deleted |
| existence | reported: created | set |
| children | reported if its pzxid is newer | reported: deleted |

A client's identities are those of its connection: `ClientAccess`. The store checks changes by ACLs,
the responses reads.

Source: FinalRequestProcessor, DataTree.setWatches and processTxn of ZooKeeper 3.8.
Differs: a watch for existence that was set while the node was there reports, of missed changes,
only its removal; so does ZooKeeper's. For a deleted node ZooKeeper checks that node's ACL.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import ZnodeError
from engine.limits import ZOOKEEPER_FRAME_BYTES_MAX
from engine.wire.structs import Message
from engine.znode.client_access import ClientAccess
from engine.znode.errors import InvalidAcl, NodeError, NoNode
from engine.znode.model import (
    Check,
    Create,
    Delete,
    EventType,
    Operation,
    OperationResult,
    SetAcl,
    SetData,
    Stat,
    Watcher,
    WatchEvent,
    WatchKind,
)
from engine.znode.permissions import DIGEST, Permission, masked_acl
from engine.znode.store import ZnodeStore
from engine.znode.zookeeper_quotas import CONFIG, CONFIG_STAT, counted_path, quota_statistics
from engine.znode.zookeeper_records import (
    pack_acls,
    pack_buffer,
    pack_int,
    pack_stat,
    pack_text,
    pack_texts,
)
from engine.znode.zookeeper_wire import (
    RUNTIME_INCONSISTENCY,
    AddWatchRequest,
    AuthRequest,
    CreateRequest,
    MultiReadRequest,
    MultiRequest,
    OpCode,
    PathRequest,
    Request,
    RequestRefused,
    SaslRequest,
    SetWatchesRequest,
    WatchedRead,
    WatchesRequest,
    multi_response,
    not_implemented,
    op_code_of,
    operation_of,
)

_SYSTEM_ERROR = -1
_BAD_ARGUMENTS = -8
_NO_WATCHER = -121
_RECONFIG_DISABLED = -123
#: Kinds of watches by their number in requests; the number 3 stands for all.
_WATCH_KINDS: dict[int, WatchKind | None] = {1: WatchKind.CHILDREN, 2: WatchKind.DATA, 3: None}


def error_code(error: ZnodeError) -> int:
    """Return ZooKeeper's error code for a refusal, SYSTEMERROR if it has none."""
    code = getattr(error, "code", _SYSTEM_ERROR)
    assert isinstance(code, int)
    return code


class ZookeeperResponses:
    """Responds to the requests of one session; `watcher` receives the events of its watches."""

    def __init__(
        self, store: ZnodeStore, session_id: int, watcher: Watcher, access: ClientAccess
    ) -> None:
        self._store = store
        self._session_id = session_id
        self._watcher = watcher
        self._access = access

    def respond(self, request: Request) -> bytes:
        """Execute a request and return the body of its response.

        Errors: RequestRefused, those of the store.
        """
        responder = _RESPONDERS.get(request.type)
        if responder is None:
            raise not_implemented(request.type)
        return responder(self, request.body)

    # -- one node ------------------------------------------------------------------------------

    def _ping(self, _body: None) -> bytes:
        """Restart the session's timeout; the response has no body."""
        self._store.heartbeat(self._session_id)
        return b""

    def _create(self, body: CreateRequest) -> bytes:
        """Create a node; respond with its path."""
        return pack_text(self._create_node(body))

    def _create_2(self, body: CreateRequest) -> bytes:
        """Create a node; respond with its path and its stat."""
        path = self._create_node(body)
        return pack_text(path) + pack_stat(self._require_stat(path))

    def _apply(self, operation: Operation | SetAcl) -> OperationResult:
        """Apply one operation in the client's session, with the rights of its identities."""
        return self._store.apply(self._session_id, operation, self._access.identities)

    def _operation_with_acl(self, body: CreateRequest | Delete | SetData | Check) -> Operation:
        """Return the store's operation for a request; for a creation, with the ACL to store.

        Raises RequestRefused, InvalidAcl.
        """
        operation = operation_of(body)
        if not isinstance(operation, Create):
            return operation
        return operation._replace(acl=self._access.acl_to_store(operation.path, operation.acl))

    def _check_read(self, path: str) -> None:
        """Raise NoAuth unless the client may read the node."""
        self._store.check_permitted(path, Permission.READ, self._access.identities)

    def _create_node(self, body: CreateRequest) -> str:
        """Create a node, and return its path: a sequential node gets a suffix."""
        path = self._apply(self._operation_with_acl(body))
        assert isinstance(path, str)
        return path

    def _delete(self, body: Message) -> bytes:
        """Delete a node; the response has no body."""
        self._apply(body)
        return b""

    def _set_data(self, body: Message) -> bytes:
        """Set a node's data; respond with the node's new stat."""
        stat = self._apply(body)
        assert isinstance(stat, Stat)
        return pack_stat(stat)

    def _exists(self, body: WatchedRead) -> bytes:
        """Respond with the node's stat; raise NoNode. The watch is set even without a node."""
        if self._store.exists(self._session_id, body.path) is not None:
            self._check_read(body.path)
        if body.watch:
            self._watch(body.path, WatchKind.DATA)
        return pack_stat(self._require_stat(body.path))

    def _get_data(self, body: WatchedRead) -> bytes:
        """Respond with the node's data and stat; quota statistics are computed on reading."""
        if body.path == CONFIG and self._store.exists(self._session_id, CONFIG) is None:
            # This node never changes, so no watch is set.
            return pack_buffer(b"") + pack_stat(CONFIG_STAT)
        data, stat = self._store.get(self._session_id, body.path)
        self._check_read(body.path)
        counted = counted_path(body.path)
        if counted is not None:
            data = quota_statistics(self._store, self._session_id, counted)
            stat = stat._replace(data_length_bytes=len(data))
        if body.watch:
            self._watch(body.path, WatchKind.DATA)
        return pack_buffer(data) + pack_stat(stat)

    def _get_children(self, body: WatchedRead) -> bytes:
        """Respond with the names of a node's children."""
        names, _ = self._read_children(body)
        return names

    def _get_children_2(self, body: WatchedRead) -> bytes:
        """Respond with the names of a node's children and the node's stat."""
        names, stat = self._read_children(body)
        return names + pack_stat(stat)

    def _read_children(self, body: WatchedRead) -> tuple[bytes, Stat]:
        """Return the packed child names and the node's stat; raise NoNode."""
        names, stat = self._store.children(self._session_id, body.path)
        self._check_read(body.path)
        if body.watch:
            self._watch(body.path, WatchKind.CHILDREN)
        return pack_texts(names), stat

    def _get_acl(self, body: PathRequest) -> bytes:
        """Respond with ACL and stat; digests are hidden from clients without ADMIN permission."""
        acl, stat = self._store.acl(self._session_id, body.path)
        identities = self._access.identities
        self._store.check_permitted(body.path, Permission.READ | Permission.ADMIN, identities)
        return pack_acls(masked_acl(acl, identities)) + pack_stat(stat)

    def _set_acl(self, body: SetAcl) -> bytes:
        """Replace the node's ACL; respond with its stat.

        Entries of the scheme `auth` are replaced by the client's identities.
        """
        kept = self._access.acl_to_store(body.path, body.acl)
        stat = self._apply(body._replace(acl=kept))
        assert isinstance(stat, Stat)
        return pack_stat(stat)

    def _sync(self, body: PathRequest) -> bytes:
        """Respond with the path at once: a single server is always up to date."""
        # A single server is always up to date.
        self._store.heartbeat(self._session_id)
        return pack_text(body.path)

    def _require_stat(self, path: str) -> Stat:
        """Return the node's stat; raise NoNode if there is none."""
        stat = self._store.exists(self._session_id, path)
        if stat is None:
            raise NoNode(path)
        return stat

    # -- several nodes -------------------------------------------------------------------------

    def _get_ephemerals(self, body: PathRequest) -> bytes:
        """Respond with the session's ephemeral nodes whose paths begin with a text."""
        paths = self._store.ephemerals(self._session_id)
        return pack_texts(path for path in paths if path.startswith(body.path))

    def _run_multi(self, body: MultiRequest) -> bytes:
        """Run the operations as one transaction; respond with their results.

        If one is refused, the response has an error code for each operation.
        """
        if not body.operations:
            self._store.heartbeat(self._session_id)
            return multi_response([])
        done = []
        try:
            for request in body.operations:
                done.append(self._operation_with_acl(request))
            results = self._store.multi(self._session_id, done, self._access.identities)
        except RequestRefused as error:
            return _refused(len(done), error.code, len(body.operations))
        except InvalidAcl as error:
            return _refused(len(done), error.code, len(body.operations))
        except NodeError as error:
            return _refused(error.operation_index or 0, error.code, len(body.operations))
        packed: list[tuple[OpCode, bytes] | int] = []
        for operation, result in zip(done, results, strict=True):
            if isinstance(result, Stat):
                packed.append((OpCode.SET_DATA, pack_stat(result)))
            else:
                created = b"" if result is None else pack_text(result)
                packed.append((op_code_of(operation), created))
        return multi_response(packed)

    def _run_multi_read(self, body: MultiReadRequest) -> bytes:
        """Read each path; a failed read has its code in the response."""
        results: list[tuple[OpCode, bytes] | int] = []
        size_bytes = 0
        for type_, path in body.reads:
            read = self._get_data if type_ is OpCode.GET_DATA else self._get_children
            try:
                content = read(WatchedRead(path, watch=False))
            except NodeError as error:
                results.append(error.code)
                continue
            size_bytes += len(content)
            if size_bytes > ZOOKEEPER_FRAME_BYTES_MAX:
                raise RequestRefused(-8, f"an answer above {ZOOKEEPER_FRAME_BYTES_MAX} bytes")
            results.append((type_, content))
        return multi_response(results)

    # -- watches -------------------------------------------------------------------------------

    def _watch(self, path: str, kind: WatchKind) -> None:
        """Set a one-shot watch; its event is sent if the client may read the node then."""
        self._store.watch(self._session_id, path, kind, self._report)

    def _report(self, event: WatchEvent) -> None:
        """Send the event of a watch, if the client may read the node."""
        if self._store.may_receive_event(event.path, self._access.identities):
            self._watcher(event)

    def _add_watch(self, body: AddWatchRequest) -> bytes:
        """Set a persistent watch: mode 0 for the node, 1 recursive; refuse other modes."""
        if body.mode not in (0, 1):
            raise RequestRefused(_BAD_ARGUMENTS, f"no mode {body.mode} of a watch")
        self._persist(body.path, is_recursive=body.mode == 1)
        return pack_int(0)

    def _persist(self, path: str, *, is_recursive: bool) -> None:
        """Set a watch that stays after it fires, on one node or on all its descendants too."""
        self._store.watch_persistently(
            self._session_id, path, self._report, is_recursive=is_recursive
        )

    def _check_watches(self, body: WatchesRequest) -> bytes:
        """Respond without a body if the session has such a watch; raise RequestRefused if not."""
        self._kind_of_watches(body)
        return b""

    def _remove_watches(self, body: WatchesRequest) -> bytes:
        """Remove the session's watches that the request names; raise RequestRefused without any."""
        self._store.remove_watches(self._session_id, body.path, self._kind_of_watches(body))
        return b""

    def _kind_of_watches(self, body: WatchesRequest) -> WatchKind | None:
        """Return the kind of watches that a request names, None for all kinds.

        Raises RequestRefused if the session has no such watch.
        """
        if body.type not in _WATCH_KINDS:
            raise RequestRefused(_BAD_ARGUMENTS, f"no type {body.type} of watches")
        kind = _WATCH_KINDS[body.type]
        if not self._store.has_watch(self._session_id, body.path, kind):
            raise RequestRefused(_NO_WATCHER, f"no such watch of {body.path}")
        return kind

    def _set_watches(self, body: SetWatchesRequest) -> bytes:
        """Restore the watches of a reconnected client; changes since `seen_zxid` fire at once."""
        for path in body.data:
            self._set_again(path, WatchKind.DATA, EventType.DATA_CHANGED, body.seen_zxid)
        for path in body.exists:
            if self._store.exists(self._session_id, path) is None:
                self._watch(path, WatchKind.DATA)
            else:
                self._watcher(WatchEvent(EventType.CREATED, path))
        for path in body.children:
            self._set_again(path, WatchKind.CHILDREN, EventType.CHILDREN_CHANGED, body.seen_zxid)
        for path in body.persistent:
            self._persist(path, is_recursive=False)
        for path in body.recursive:
            self._persist(path, is_recursive=True)
        return b""

    def _set_again(self, path: str, kind: WatchKind, change: EventType, seen_zxid: int) -> None:
        """Send the event of a change after `seen_zxid` at once; else set the one-shot watch."""
        stat = self._store.exists(self._session_id, path)
        if stat is None:
            self._watcher(WatchEvent(EventType.DELETED, path))
        elif (stat.mzxid if kind is WatchKind.DATA else stat.pzxid) > seen_zxid:
            self._watcher(WatchEvent(change, path))
        else:
            self._watch(path, kind)

    # -- the client itself ---------------------------------------------------------------------

    def _add_auth(self, body: AuthRequest) -> bytes:
        """Add the identity that a proof of a scheme shows; raises RequestRefused."""
        self._access.add(body.scheme, body.proof)
        return b""

    def _answer_sasl(self, body: SaslRequest) -> bytes:
        """Respond to a SASL token of the client with the token of the server."""
        return pack_buffer(self._access.answer_to(body.token))

    def _who_am_i(self, _body: None) -> bytes:
        """Return the identities of the connection; this also counts as a heartbeat."""
        self._store.heartbeat(self._session_id)
        identities = self._access.identities
        # The digest after the name is not shown.
        parts = [
            pack_text(scheme) + pack_text(name.partition(":")[0] if scheme == DIGEST else name)
            for scheme, name in identities
        ]
        return pack_int(len(parts)) + b"".join(parts)

    def _refuse_reconfigure(self, _body: None) -> bytes:
        """Refuse a change of the ensemble, as a server does where reconfig is disabled."""
        raise RequestRefused(_RECONFIG_DISABLED, "there is one server")

    def _close_session(self, _body: None) -> bytes:
        """End the session with its ephemeral nodes and its watches."""
        self._store.close_session(self._session_id)
        return b""


def _refused(index: int, code: int, count: int) -> bytes:
    """Return a refused multi: 0 before the refused operation, RUNTIME_INCONSISTENCY after it."""
    following = [RUNTIME_INCONSISTENCY] * (count - index - 1)
    return multi_response([*([0] * index), code, *following])


_RESPONDERS: dict[int, Callable[[ZookeeperResponses, Message], bytes]] = {
    OpCode.CREATE: ZookeeperResponses._create,
    OpCode.DELETE: ZookeeperResponses._delete,
    OpCode.EXISTS: ZookeeperResponses._exists,
    OpCode.GET_DATA: ZookeeperResponses._get_data,
    OpCode.SET_DATA: ZookeeperResponses._set_data,
    OpCode.GET_ACL: ZookeeperResponses._get_acl,
    OpCode.SET_ACL: ZookeeperResponses._set_acl,
    OpCode.GET_CHILDREN: ZookeeperResponses._get_children,
    OpCode.SYNC: ZookeeperResponses._sync,
    OpCode.PING: ZookeeperResponses._ping,
    OpCode.GET_CHILDREN_2: ZookeeperResponses._get_children_2,
    OpCode.MULTI: ZookeeperResponses._run_multi,
    OpCode.CREATE_2: ZookeeperResponses._create_2,
    OpCode.RECONFIG: ZookeeperResponses._refuse_reconfigure,
    OpCode.CHECK_WATCHES: ZookeeperResponses._check_watches,
    OpCode.REMOVE_WATCHES: ZookeeperResponses._remove_watches,
    OpCode.MULTI_READ: ZookeeperResponses._run_multi_read,
    OpCode.AUTH: ZookeeperResponses._add_auth,
    OpCode.SET_WATCHES: ZookeeperResponses._set_watches,
    OpCode.SASL: ZookeeperResponses._answer_sasl,
    OpCode.GET_EPHEMERALS: ZookeeperResponses._get_ephemerals,
    OpCode.SET_WATCHES_2: ZookeeperResponses._set_watches,
    OpCode.ADD_WATCH: ZookeeperResponses._add_watch,
    OpCode.WHO_AM_I: ZookeeperResponses._who_am_i,
    OpCode.CLOSE_SESSION: ZookeeperResponses._close_session,
}
