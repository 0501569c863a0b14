"""Request the controller to move the leaderships of this broker before it stops.

```
alone in the cluster, controlled.shutdown.enable=false, not up yet ──> no request
request ── no partition remains ──> wait until this broker has its new roles ──> done
     ^                ├─ partitions remain, an error, no controller
     └── back-off <───┴─ connection failed, timeout: on a new connection then
         (controlled.shutdown.max.retries requests in all) ──> the broker stops in any case
```

Clients are served meanwhile: delayed requests complete, and clients learn the new leaders before
their connections close.

Source: KafkaServer.controlledShutdown; ELE-5, ZN:controlled-shutdown.
Differs: the only live broker sends no request, since no other one could lead. A new controller gets
the request at once. The response has the timeout of other inter-broker requests. Kafka closes its
connections after the response, possibly before the broker has its new roles.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from engine.broker.peers import PeerChannel, Peers
from engine.client.connection import Call
from engine.client.errors import TimedOut
from engine.config.broker_config import BrokerConfig
from engine.errors import EngineError
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.kafka_errors import NONE, kafka_error
from engine.limits import LEADER_MOVES_WAIT_MS
from engine.replication.metadata_cache import BrokerNode, MetadataCache
from engine.wire import messages

_log = logging.getLogger("kafka.server.KafkaServer")


class ShutdownRequests:
    """The ControlledShutdown requests of one broker."""

    def __init__(
        self, config: BrokerConfig, metadata_cache: MetadataCache, peers: Peers, timers: Timers,
        clock: Clock,
    ) -> None:  # fmt: skip
        """Create the sender of ControlledShutdown requests; nothing is sent before `run`."""
        self._config = config
        self._metadata_cache = metadata_cache
        self._peers = peers
        self._timers = timers
        self._clock = clock
        #: The controller at the other end of `_channel`. None before the first request.
        self._controller: BrokerNode | None = None
        #: The controller of the last request: metadata with another one ends the back-off.
        self._requested_id: int | None = None
        self._channel: PeerChannel | None = None
        #: Set by `end_waits`, when the complete cluster stops.
        self._is_abandoned = False
        #: Functions that end the back-off, the wait for the response and the wait for metadata, if
        #: one is running.
        self._end_pause: Callable[[], None] = lambda: None
        self._end_wait: Callable[[], None] = lambda: None
        self._end_metadata_wait: Callable[[], None] = lambda: None

    async def run(self, broker_epoch: int) -> None:
        """Ask the controller to move leaders away, until this broker leads no replicated partition.

        Ends earlier when the retries are used up. Nothing is sent if controlled shutdown is
        disabled or no other broker is live.
        """
        if not self._config.controlled_shutdown_enable or self._is_alone():
            return
        _log.info("Starting controlled shutdown")
        self._metadata_cache.on_update(self._on_metadata)
        try:
            has_succeeded = await self._repeat_requests(broker_epoch)
        finally:
            self._forget_controller()
        if has_succeeded:
            await self._await_metadata()
        else:
            _log.warning(
                "Proceeding to do an unclean shutdown as all the controlled shutdown attempts "
                "failed"
            )

    def end_waits(self) -> None:
        """End all waits: the complete cluster stops, and no broker remains to lead."""
        self._is_abandoned = True
        self._end_pause()
        self._end_wait()
        self._end_metadata_wait()

    def _on_metadata(self, _topics: frozenset[str]) -> None:
        """End the back-off if a new controller is known, and the wait if this broker leads no more.

        Called after each UpdateMetadata.
        """
        if self._metadata_cache.controller_id not in (None, self._requested_id):
            self._end_pause()
        if not self._leads_for_others():
            self._end_metadata_wait()

    def _is_alone(self) -> bool:
        """True if no other live broker is known, so that leaders have no place to move to."""
        return set(self._metadata_cache.brokers) <= {self._config.broker_id}

    def _leads_for_others(self) -> bool:
        """True if the metadata cache has this broker as leader of partitions that others
        replicate.
        """
        return any(
            partition.leader_id == self._config.broker_id and len(partition.replicas) > 1
            for partitions in self._metadata_cache.topics.values()
            for partition in partitions.values()
        )

    async def _await_metadata(self) -> None:
        """Wait until the metadata has no leadership of this broker, at most LEADER_MOVES_WAIT_MS.

        The controller's LeaderAndIsr may arrive after its response: a broker that closed at once
        would still respond as a leader, and its clients would not find the new one.
        """
        if self._leads_for_others() and not self._is_abandoned:
            due_ms = self._clock.monotonic_ms() + LEADER_MOVES_WAIT_MS
            informed: Promise[None] = Promise()
            self._end_metadata_wait = _keep_once(informed)
            cancel = self._timers.call_at(due_ms, self._end_metadata_wait)
            await informed
            cancel()

    async def _repeat_requests(self, broker_epoch: int) -> bool:
        """Send requests until one succeeds, and return True; False once retries are used up."""
        retries_left = self._config.controlled_shutdown_max_retries
        while retries_left > 0 and not self._is_abandoned:
            retries_left -= 1
            if await self._send_request(broker_epoch):
                return True
            if retries_left > 0 and not self._is_abandoned:
                await self._back_off()
                _log.info("Retrying controlled shutdown (%d retries remaining)", retries_left)
        return False

    async def _send_request(self, broker_epoch: int) -> bool:
        """Send one ControlledShutdown; return True if no partition remains to be moved."""
        channel = self._open_channel_to_controller()
        if channel is None:
            return False
        begun_ms = self._clock.monotonic_ms()
        request = messages.ControlledShutdownRequest(
            broker_id=self._config.broker_id, broker_epoch=broker_epoch
        )
        try:
            response = await self._await_response(channel.send(Call("ControlledShutdown", request)))
        except EngineError as error:
            self._forget_controller()
            _log.warning(
                "Error during controlled shutdown, possibly because leader movement took longer "
                "than the configured controller.socket.timeout.ms and/or request.timeout.ms: %s",
                str(error),
            )
            return False
        return response is not None and _log_result(response, self._clock.monotonic_ms() - begun_ms)

    async def _await_response(
        self, requested: Promise[messages.ControlledShutdownResponse]
    ) -> messages.ControlledShutdownResponse | None:
        """Wait for a response and return it, or raise its error; None after `end_waits`.

        Raises TimedOut after `controller.socket.timeout.ms`.
        """
        there: Promise[None] = Promise()
        self._end_wait = end_wait = _keep_once(there)
        requested.watch(end_wait)
        # A controller in this process has no connection whose end would end the wait.
        timeout_ms = self._config.controller_socket_timeout_ms
        cancel = self._timers.call_at(self._clock.monotonic_ms() + timeout_ms, end_wait)
        await there
        cancel()
        if requested.is_kept:
            return requested.result()
        if not self._is_abandoned:
            raise TimedOut("ControlledShutdown", timeout_ms)
        return None

    def _open_channel_to_controller(self) -> PeerChannel | None:
        """Return a channel to the current controller; the previous channel if it is unknown."""
        controller_id = self._requested_id = self._metadata_cache.controller_id
        if controller_id is None:
            _log.info("No controller present in the metadata cache")
            return self._channel
        controller = self._metadata_cache.brokers.get(controller_id)
        if controller is None:
            _log.info(
                "Broker registration for controller %d is not available in the metadata cache",
                controller_id,
            )
        elif self._channel is None or controller != self._controller:
            self._forget_controller()
            self._controller, self._channel = controller, self._peers.channel(controller)
        return self._channel

    def _forget_controller(self) -> None:
        """Close the channel to the controller; the next request opens a new one."""
        channel, self._channel, self._controller = self._channel, None, None
        if channel is not None:
            channel.close()

    async def _back_off(self) -> None:
        """Wait `controlled.shutdown.retry.backoff.ms`, or until a new controller is known."""
        over: Promise[None] = Promise()
        self._end_pause = _keep_once(over)
        due_ms = self._clock.monotonic_ms() + self._config.controlled_shutdown_retry_backoff_ms
        cancel = self._timers.call_at(due_ms, self._end_pause)
        await over
        cancel()


def _keep_once(promise: Promise[None]) -> Callable[[], None]:
    """Return a function that keeps the promise; further calls have no effect.

    Several events may end the same wait.
    """

    def keep() -> None:
        """Keep the promise unless it is kept."""
        if not promise.is_kept:
            promise.keep(None)

    return keep


def _log_result(response: messages.ControlledShutdownResponse, lasted_ms: int) -> bool:
    """Log a ControlledShutdown response; return True if no partition remains to be moved."""
    if response.error_code != NONE:
        name = kafka_error(response.error_code).name
        _log.info("Controlled shutdown request returned after %dms with error %s", lasted_ms, name)
        return False
    remaining = len(response.remaining_partitions)
    if remaining:
        _log.info(
            "Controlled shutdown request returned after %dms with %d partitions remaining to move",
            lasted_ms,
            remaining,
        )
        return False
    _log.info("Controlled shutdown request returned successfully after %dms", lasted_ms)
    return True
