"""librdkafka's own producer and consumer, called in batches.

confluent-kafka makes a Python call for each record it takes, another for each it is told of, and an
object of each that it reads; on two processors that the broker shares, they cost more than the
broker does, and what is measured is the client. The same library, from the same package, takes and
gives thousands of records a call here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from pathlib import Path
from typing import Any

import confluent_kafka
import numba
import numpy as np

_PRODUCER, _CONSUMER = 0, 1
_OK = 0
#: Neither copied nor freed: values stay ours.
_NO_FLAGS = 0
_QUEUE_FULL = -184
_ERROR_BYTES = 512
_READ_AT_ONCE = 10_000


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = (
        ("err", c_int),
        ("rkt", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("_private", c_void_p),
    )


class Failed(Exception):
    """librdkafka refused a setting or a record, or did not get rid of all records in time."""


def _library() -> ctypes.CDLL:
    """Return the library that confluent-kafka brings, loaded by it already."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    found = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    for name, result, arguments in (
        ("conf_new", c_void_p, []),
        ("conf_set", c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]),
        ("new", c_void_p, [c_int, c_void_p, c_char_p, c_size_t]),
        ("topic_new", c_void_p, [c_void_p, c_char_p, c_void_p]),
        ("topic_destroy", None, [c_void_p]),
        ("produce_batch", c_int, [c_void_p, c_int32, c_int, POINTER(_Message), c_int]),
        ("poll", c_int, [c_void_p, c_int]),
        ("flush", c_int, [c_void_p, c_int]),
        ("destroy", None, [c_void_p]),
        ("consume_start", c_int, [c_void_p, c_int32, c_int64]),
        ("consume_stop", c_int, [c_void_p, c_int32]),
        ("consume_batch", c_ssize_t, [c_void_p, c_int32, c_int, POINTER(c_void_p), c_size_t]),
        ("message_destroy", None, [c_void_p]),
    ):
        function = getattr(found, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return found


def _handle(library: ctypes.CDLL, kind: int, settings: dict[str, Any]) -> c_void_p:
    """Return a new client; raises Failed."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    conf = library.rd_kafka_conf_new()
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if library.rd_kafka_conf_set(conf, name.encode(), text.encode(), error, _ERROR_BYTES):
            raise Failed(error.value.decode())
    handle = c_void_p(library.rd_kafka_new(kind, conf, error, _ERROR_BYTES))
    if not handle:
        raise Failed(error.value.decode())
    return handle


class BatchProducer:
    """Produces the same values again and again to partition 0 of a topic."""

    def __init__(self, settings: dict[str, Any], topic: str, values: list[bytes]) -> None:
        self._library = _library()
        self._handle = _handle(self._library, _PRODUCER, settings)
        self._topic = c_void_p(self._library.rd_kafka_topic_new(self._handle, topic.encode(), None))
        self._values = values
        self._messages = (_Message * len(values))()

    def __enter__(self) -> BatchProducer:
        return self

    def __exit__(self, *_error: object) -> None:
        self._library.rd_kafka_topic_destroy(self._topic)
        self._library.rd_kafka_destroy(self._handle)

    def send(self, count: int, timeout_s: float) -> None:
        """Produce so many records and wait until the broker has answered for all of them."""
        messages = self._messages
        for message, value in zip(messages, self._values, strict=True):
            message.payload = ctypes.cast(c_char_p(value), c_void_p)
            message.len = len(value)
        while count:
            size = min(count, len(messages))
            first = byref(messages[0])
            taken = self._library.rd_kafka_produce_batch(self._topic, 0, _NO_FLAGS, first, size)
            count -= taken
            if taken != size:
                codes = {message.err for message in messages[:size]} - {_OK}
                if codes != {_QUEUE_FULL}:
                    raise Failed(f"records were refused with {codes}")
                self._library.rd_kafka_poll(self._handle, 1)
        if self._library.rd_kafka_flush(self._handle, int(timeout_s * 1000)) != _OK:
            raise Failed("not all records were taken in time")


class BatchConsumer:
    """Reads partition 0 of a topic from its start."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self._library = _library()
        self._handle = _handle(self._library, _CONSUMER, settings)
        self._topic = c_void_p(self._library.rd_kafka_topic_new(self._handle, topic.encode(), None))
        self._destroy = _compiled_destroy(self._library)

    def __enter__(self) -> BatchConsumer:
        return self

    def __exit__(self, *_error: object) -> None:
        self._library.rd_kafka_topic_destroy(self._topic)
        self._library.rd_kafka_destroy(self._handle)

    def read(self, count: int, timeout_s: float) -> None:
        """Read so many records; raises Failed when none comes for so long, or another one."""
        library, topic = self._library, self._topic
        messages = np.zeros(_READ_AT_ONCE, np.uintp)
        addresses = messages.ctypes.data_as(POINTER(c_void_p))
        wanted = count
        library.rd_kafka_consume_start(topic, 0, 0)
        while count:
            # It returns when it has so many, and no sooner.
            size = library.rd_kafka_consume_batch(
                topic, 0, int(timeout_s * 1000), addresses, min(count, len(messages))
            )
            if size <= 0:
                raise Failed(f"{count} records did not come")
            count -= size
            last = _Message.from_address(int(messages[size - 1]))
            if last.err != _OK or last.offset != wanted - count - 1:
                raise Failed(f"error {last.err} at offset {last.offset}")
            self._destroy(messages, size)
        library.rd_kafka_consume_stop(topic, 0)


def _compiled_destroy(library: ctypes.CDLL) -> Callable[[Any, int], None]:
    """Return what lets go of messages: one call of Python for each would cost the client most."""
    address = ctypes.cast(library.rd_kafka_message_destroy, c_void_p).value
    assert address is not None
    destroy = ctypes.CFUNCTYPE(None, c_size_t)(address)

    @numba.njit  # type: ignore[untyped-decorator]
    def destroy_all(messages: Any, count: int) -> None:
        for number in range(count):
            destroy(messages[number])

    destroy_all(np.zeros(0, np.uintp), 0)
    return destroy_all  # type: ignore[no-any-return]
