"""The embedded store as a ZooKeeper server: connections, and the sessions that outlive them (D10).

```
connected ── first frame ──> new session, or an old one with its password ──> requests in order
    │                              │ over, or a wrong password                     │
    │ not ZooKeeper's bytes        v                                               │ closeSession
    v                         refused, closed                                      v
  closed <── connection lost: watches end, the session waits for its timeout ── answered, closed
```

Events are sent when they happen, so before the response to any later request (Z3). A session that
is resumed on another connection closes its first.

Source: ZooKeeperServer, NIOServerCnxn and SessionTrackerImpl of ZooKeeper 3.8.
Differs: passwords are derived from a secret of this store; ZooKeeper's from a number that all
servers know. No four-letter words: other bytes are refused. A resumed session keeps the timeout
it began with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from engine.errors import StorageError, ZnodeError
from engine.host.ports import Connection, Entropy, Listener, ListenOptions, Network
from engine.host.unlimited_connections import UnlimitedConnections
from engine.limits import (
    ZOOKEEPER_FRAME_BYTES_MAX,
    ZOOKEEPER_SESSION_TIMEOUT_MAX_MS,
    ZOOKEEPER_SESSION_TIMEOUT_MIN_MS,
)
from engine.znode.client_access import ClientAccess
from engine.znode.errors import SessionExpired, ZnodeStoreFailed
from engine.znode.model import WatchEvent
from engine.znode.store import ZnodeStore
from engine.znode.zookeeper_records import BadZookeeperFrame, pack_buffer
from engine.znode.zookeeper_responses import ZookeeperResponses, error_code
from engine.znode.zookeeper_wire import (
    PASSWORD_BYTES,
    ConnectRequest,
    OpCode,
    Request,
    connect_response,
    notification,
    read_connect,
    read_request,
    response_head,
    session_over_response,
)

#: A client's connection is closed after a refused login.
_LOGINS = (OpCode.AUTH, OpCode.SASL)
_log = logging.getLogger("zookeeper.server")


class ZookeeperServer:
    """Serves one store to all clients."""

    def __init__(
        self, store: ZnodeStore, entropy: Entropy, users: Mapping[str, str] | None = None
    ) -> None:
        """Serve a store to ZooKeeper clients.

        `users` have passwords for SASL, None allows no login.

        Errors: ZnodeStoreFailed if its secret cannot be kept.
        """
        self.store = store
        self._entropy = entropy
        self._users = {} if users is None else users
        #: Key from which the passwords of sessions are derived: they hold after a restart.
        self._secret = store.session_secret(entropy)
        #: The connection that each session uses now.
        self._peers: dict[int, _Peer] = {}
        #: All connections in the order they were accepted, those without a session too.
        self._connected: dict[_Peer, None] = {}
        self._listeners: list[Listener] = []

    def listen(self, network: Network, host: str, port: int) -> Listener:
        """Serve on one more address until `close`; the errors are the network's."""
        listener = network.listen(
            host,
            port,
            lambda connection: _Peer(self, connection).start(),
            ListenOptions(UnlimitedConnections(), _log_refused, _log_rejected),
        )
        self._listeners.append(listener)
        return listener

    def close(self) -> None:
        """Stop listening and close the connections; their sessions stay open."""
        for listener in self._listeners:
            listener.close()
        for peer in list(self._connected):
            peer.close("the server stops")

    def access_of(self, peer: str) -> ClientAccess:
        """Return the identities of a client that connects from `peer`, before it logs in."""
        return ClientAccess(peer, self._users, self._entropy)

    def password_of(self, session_id: int) -> bytes:
        """Return the password of a session, which only its client has."""
        # Loaded here: not every cluster has a client that is another process.
        import hmac

        digest = hmac.digest(self._secret, session_id.to_bytes(8, "big", signed=True), "sha256")
        return digest[:PASSWORD_BYTES]

    def begin(self, request: ConnectRequest, peer: _Peer) -> tuple[int, int]:
        """Open or resume a session on a connection; return its id and its timeout in ms.

        Errors: SessionExpired, those of the store.
        """
        if request.session_id == 0:
            timeout_ms = min(
                max(request.timeout_ms, ZOOKEEPER_SESSION_TIMEOUT_MIN_MS),
                ZOOKEEPER_SESSION_TIMEOUT_MAX_MS,
            )
            session_id = self.store.open_session(timeout_ms)
        else:
            session_id = request.session_id
            self._check_password(session_id, request.password)
            self._move(session_id)
        timeout_ms = self.store.resume_session(
            session_id, partial(self._on_expired_session, session_id)
        )
        self._peers[session_id] = peer
        return session_id, timeout_ms

    def _check_password(self, session_id: int, password: bytes) -> None:
        """Raise SessionExpired for a wrong password, compared in constant time."""
        import hmac

        if not hmac.compare_digest(password, self.password_of(session_id)):
            raise SessionExpired(session_id)

    def _move(self, session_id: int) -> None:
        """Close the earlier connection of a session that a new connection resumes."""
        earlier = self._peers.get(session_id)
        if earlier is not None:
            earlier.close("its session moved to another connection")

    def connected(self, peer: _Peer) -> None:
        """Add a connection that has just been accepted."""
        self._connected[peer] = None

    def forget(self, session_id: int, peer: _Peer) -> None:
        """Remove an ended connection, and its session's watches; the session stays."""
        self._connected.pop(peer, None)
        if self._peers.get(session_id) is peer:
            del self._peers[session_id]
            self.store.drop_watches(session_id)

    def _on_expired_session(self, session_id: int) -> None:
        """Close the connection of an expired session, if it has one."""
        _log.info("session 0x%x has expired", session_id)
        peer = self._peers.get(session_id)
        if peer is not None:
            peer.close("its session has expired")


def _log_refused(peer: str, reason: str) -> None:
    """Log a connection that is closed because of its client's behaviour."""
    _log.warning("%s is cut off: %s", peer, reason)


def _log_rejected(peer: str, reason: str) -> None:
    """Log a connection that is rejected or delayed."""
    _log.info("%s is kept out: %s", peer, reason)


class _Peer:
    """One connection."""

    def __init__(self, server: ZookeeperServer, connection: Connection) -> None:
        """Take the frames of `connection`; the first is a session's request."""
        self._server = server
        self._store = server.store
        self._connection = connection
        self._session_id = 0
        #: Responds in the session; None before the session has begun.
        self._responses: ZookeeperResponses | None = None
        #: Whether the connection is closed, or will be after the last response: no more frames are
        #: served.
        self._is_ending = False

    def start(self) -> None:
        """Serve the frames of the connection."""
        self._server.connected(self)
        self._connection.on_frame = self._serve_frame
        self._connection.on_close = self._on_closed

    def close(self, reason: str) -> None:
        """Close the connection at once."""
        self._is_ending = True
        self._connection.close(reason)

    def _serve_frame(self, frame: memoryview) -> None:
        """Serve one frame: a connect request first, then requests; close on invalid bytes."""
        if self._is_ending:
            return
        try:
            if len(frame) > ZOOKEEPER_FRAME_BYTES_MAX:
                raise BadZookeeperFrame(f"at most {ZOOKEEPER_FRAME_BYTES_MAX} bytes", len(frame), 0)
            if self._responses is None:
                self._begin(read_connect(frame))
            else:
                self._serve(self._responses, read_request(frame))
        except BadZookeeperFrame as error:
            _log.warning("%s is cut off: %s", self._connection.peer, error)
            self.close(str(error))

    def _on_closed(self, _reason: str) -> None:
        """Serve no more frames, and remove the session's watches; the session stays."""
        self._is_ending = True
        self._server.forget(self._session_id, self)

    # Beginning

    def _begin(self, request: ConnectRequest) -> None:
        """Begin or resume a session; refuse a client that has seen later transactions."""
        if request.last_zxid > self._store.zxid:
            # It was a client of another store at this address, and would now see older data.
            self.close(f"it has seen transaction {request.last_zxid}, ahead of this store")
            return
        try:
            self._session_id, timeout_ms = self._server.begin(request, self)
        except SessionExpired:
            self._end(session_over_response(request), "its session is over")
            return
        except (ZnodeError, StorageError) as error:
            _log.warning("%s gets no session: %s", self._connection.peer, error)
            self.close(str(error))
            return
        self._responses = ZookeeperResponses(
            self._store,
            self._session_id,
            self._notify,
            self._server.access_of(self._connection.peer),
        )
        password = self._server.password_of(self._session_id)
        self._send(connect_response(request, timeout_ms, self._session_id, password))

    # Serving

    def _serve(self, responses: ZookeeperResponses, request: Request) -> None:
        """Respond to one request; close the connection at the end of its session.

        A refused login closes it too.
        """
        code, body, is_last = 0, b"", request.type == OpCode.CLOSE_SESSION
        try:
            body = responses.respond(request)
        except ZnodeError as error:
            code = error_code(error)
            if request.type == OpCode.SASL:
                # Java's client reads a token in the response to a refused login too.
                body = pack_buffer(None)
            is_last = isinstance(error, SessionExpired) or request.type in _LOGINS
        except ZnodeStoreFailed as error:
            _log.error("%s gets no answer: %s", self._connection.peer, error)
            code, is_last = error.code, True
        head = response_head(request.xid, self._store.zxid, code)
        if is_last:
            self._end(head, "its session is closed", body)
        else:
            self._send(head, body)

    def _notify(self, event: WatchEvent) -> None:
        """Send the event of a watch to the client."""
        self._send(notification(event))

    def _send(self, *parts: bytes, on_sent: Callable[[], None] | None = None) -> None:
        """Send the parts of one frame, without empty parts."""
        self._connection.send([part for part in parts if part], on_sent)

    def _end(self, head: bytes, reason: str, body: bytes = b"") -> None:
        """Send a last frame, and close the connection once it is sent."""
        self._is_ending = True
        self._send(head, body, on_sent=lambda: self._connection.close(reason))
