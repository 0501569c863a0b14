"""Generate topic ids. Source: REPL-10, C8."""

from __future__ import annotations

from engine.host.ports import Entropy
from engine.ids import uuid_text

_ID_BYTES = 16


def random_topic_id(entropy: Entropy) -> bytes:
    """Return a random UUID of version 4 whose text does not begin with a dash.

    Command line tools would take a leading dash for an option.

    Source: org.apache.kafka.common.Uuid.randomUuid.
    """
    while True:
        # Version and variant distinguish it from the reserved ids (none, KRaft).
        raw = bytearray(entropy.random_bytes(_ID_BYTES))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        topic_id = bytes(raw)
        if not uuid_text(topic_id).startswith("-"):
            return topic_id
