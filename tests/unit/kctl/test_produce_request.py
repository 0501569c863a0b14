from __future__ import annotations

from pathlib import Path

import pytest

from engine.client.produce_calls import ACKS_LEADER
from engine.client.producing import Producer, ProducerOptions
from engine.limits import PRODUCE_LINE_BYTES_MAX, PRODUCE_LINGER_MS
from engine.records.codec import Codec
from kctl.arguments import UnreadableArgument
from kctl.commands.produce.input import FileRecords, FileTooLong, create_record_source
from kctl.commands.produce.request import PRODUCER_KEYS, ProduceRequest, producer_options
from tests.unit.client.produce_log import ProduceLog

VALUES = {
    "acks": "1",
    "batch.size": "5",
    "compression.type": "zstd",
    "enable.idempotence": "false",
    "linger.ms": "5",
    "max.in.flight.requests.per.connection": "1",
}


def options(**fields: object) -> ProducerOptions:
    return producer_options(ProduceRequest("t")._replace(**fields))


def test_without_settings_it_is_safe_and_prompt() -> None:
    assert ProducerOptions(linger_ms=PRODUCE_LINGER_MS) == options()


# delivery.timeout.ms is the command's own --timeout; those of transactions are read elsewhere.
_ELSEWHERE = {"delivery.timeout.ms", "transaction.timeout.ms", "transactional.id"}


@pytest.mark.parametrize("key", sorted(set(PRODUCER_KEYS) - _ELSEWHERE))
def test_every_setting_has_an_effect_and_wrong_values_none(key: str) -> None:
    assert options() != options(settings={key: VALUES[key]})
    for text in ("-2", "no such"):
        with pytest.raises(UnreadableArgument):
            options(settings={key: text})


def test_an_option_goes_before_its_setting() -> None:
    found = options(
        settings=VALUES | {"acks": "all"}, acks="1", compression="lz4", batch_bytes=7, linger_ms=8
    )
    assert ProducerOptions(ACKS_LEADER, Codec.LZ4, None, 7, 8, False, 1) == found


def test_idempotence_needs_all_acks() -> None:
    with pytest.raises(UnreadableArgument, match="idempotent"):
        options(acks="1", settings={"enable.idempotence": "true"})


@pytest.mark.parametrize(
    "fields",
    [
        {"input": "xml"},
        {"input": "ndjson", "key_delimiter": ":"},
        {"input": "ndjson", "key": "k"},
        {"input": "ndjson", "null": ""},
        {"keep_partitions": True},
        {"new_timestamps": True, "value_json": True},
        {"files": ("a",), "from_line": 2},
        {"files": ("a",), "value_json": True},
        {"files": ("a",), "key_delimiter": ":"},
        {"key_delimiter": ""},
        {"key_delimiter": "\\y"},
        {"headers": ("novalue",)},
    ],
)
def test_options_without_an_effect_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UnreadableArgument):
        create_record_source(ProduceRequest("t")._replace(**fields))


def test_a_file_longer_than_any_record_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(PRODUCE_LINE_BYTES_MAX + 1)
    path = str(tmp_path / "large")
    source = create_record_source(ProduceRequest("t")._replace(files=(path,)))
    assert isinstance(source, FileRecords)
    with pytest.raises(FileTooLong, match="large is longer than"):
        source.feed(Producer(ProduceLog().client()))
