"""The same bytes as two other codecs, kio and kafka-python, where they know the version."""

from __future__ import annotations

import importlib
import io
import pkgutil
from functools import cache
from random import Random
from typing import Any

import pytest

from engine.wire.codec import message_codec
from engine.wire.layout import attribute_name, message_layout
from engine.wire.schema import message_schema
from tests.unit.wire.values import Drawer, all_versions


class Tame(Drawer):
    """Draws what the other codecs can hold: known error codes, short times, finite numbers."""

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(0, min(high, 100))

    def fixed(self, type_name: str) -> Any:
        return self.rng.uniform(-5, 5) if type_name == "float64" else super().fixed(type_name)


def tame_bytes(name: str, version: int, release: str) -> bytes:
    """Return the engine's bytes of a message that other codecs can hold."""
    drawer = Tame(Random(f"tame {name} {version}"), name, release)
    message = drawer.struct(message_layout(name, version, release))
    return message_codec(name, version, release).encode(message)


def kio_class(name: str, version: int) -> Any:
    """Return kio's class of a message, None if it has none."""
    module, part = attribute_name(name), "header" if name.endswith("Header") else "data"
    if not name.endswith("Header") and module.endswith(("_request", "_response")):
        module, _, part = module.rpartition("_")
    try:
        return getattr(importlib.import_module(f"kio.schema.{module}.v{version}.{part}"), name)
    except ModuleNotFoundError:
        return None


def telling_versions(name: str) -> set[int]:
    """Return the first, the last, and the two around the turn to flexible: kio prepares slowly."""
    valid, flexible = message_schema(name).valid, message_schema(name).flexible.lowest
    return {valid.lowest, valid.highest, flexible - 1, flexible}


@pytest.mark.slow
def test_kio_reads_and_writes_the_same_bytes() -> None:
    from kio.serial import entity_reader, entity_writer

    compared = set()
    for name, version, release in all_versions():
        if release != "3.9.1" or version not in telling_versions(name):
            continue
        if (found := kio_class(name, version)) is None:
            continue
        raw = tame_bytes(name, version, release)
        entity, size = entity_reader(found)(raw, 0)
        out = io.BytesIO()
        entity_writer(found)(out, entity)
        assert (raw, len(raw)) == (out.getvalue(), size), (name, version)
        compared.add(name)
    assert {"LeaderAndIsrRequest", "UpdateMetadataRequest", "FetchResponse"} <= compared
    assert len(compared) > 180


@cache
def kafka_python_classes() -> dict[str, Any]:
    """Return kafka-python's message classes by name."""
    import kafka.protocol
    from kafka.protocol.api_message import ApiMessage

    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    found: dict[str, Any] = {}
    todo = list(ApiMessage.__subclasses__())
    while todo:
        made = todo.pop()
        found[made.__name__] = made
        todo += made.__subclasses__()
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_kafka_python_reads_and_writes_the_same_bytes() -> None:
    compared = 0
    known = set(all_versions())
    for name, version, release in all_versions():
        found = kafka_python_classes().get(name)
        if release == "4.3.0" and (name, version, "3.9.1") in known:
            continue
        # Its ApiVersions answer drops the throttle time of versions 1 and 2.
        if found is None or version > found.max_version or name == "ApiVersionsResponse":
            continue
        raw = tame_bytes(name, version, release)
        decoded = found.decode(raw, version=version)
        decoded._header = None
        assert raw == bytes(decoded.encode(version=version)), (name, version)
        compared += 1
    assert compared > 500
