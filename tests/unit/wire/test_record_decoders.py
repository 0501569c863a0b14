"""Decoders of internal topics against what Kafka's dump tool printed of real logs."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from engine.records.batch import BatchView
from engine.wire.record_decoders import NoSuchDecoder, format_control_record, select_decoder
from engine.wire.tool_reader import ToolFailure
from tests.golden_cases import case, case_dir, expected_outputs

KINDS = {
    "--offsets-decoder": "offsets",
    "--transaction-log-decoder": "transaction_log",
    "--cluster-metadata-decoder": "cluster_metadata",
    "--share-group-state-decoder": "share_group_state",
}
CONTROL = {
    2: ("LeaderChangeMessage", "LeaderChange: "),
    3: ("SnapshotHeaderRecord", "SnapshotHeader "),
    4: ("SnapshotFooterRecord", "SnapshotFooter "),
    5: ("KRaftVersionRecord", "KRaftVersion "),
    6: ("VotersRecord", "KRaftVoters "),
}
LINE = re.compile(r"\| offset: (\d+) .*? headerKeys: \[[^\]]*\] ?(.*)")


def invocations(name: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield (kind, invocation, stdout) of the case's runs with a decoder that ended well."""
    for invocation in case(name)["invocations"]:
        args = invocation["args"]
        kinds = [kind for option, kind in KINDS.items() if option in args]
        if kinds and invocation["exit"] == 0 and "--skip-record-metadata" not in args:
            yield kinds[0], invocation, expected_outputs(name)[invocation["stdout"]].decode()


def printed(name: str, path: str, kind: str, version: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, words) of every record of a log as the decoders print it."""
    raw = memoryview((case_dir(name) / path).read_bytes())
    decode = select_decoder(kind, version)
    position = 0
    while position < len(raw):
        batch = BatchView(raw, position)
        for record in batch.records():
            if batch.is_control:
                yield record.offset, control_words(record.key, record.value, version)
            else:
                key, value = decode(record.key, record.value, record.offset)
                words = [f"key: {key}"] if key is not None else []
                words += [f"payload: {value}"] if value is not None else []
                yield record.offset, " ".join(words)
        position += batch.size_bytes


def control_words(key: Any, value: Any, version: str) -> str:
    """Return a KRaft control record's words, empty for those this test does not know."""
    type_id = struct.unpack(">hh", key)[1]
    if type_id not in CONTROL or (type_id == 2 and version == "3.9.1"):
        return ""
    message, word = CONTROL[type_id]
    return word + format_control_record(message, value)


@pytest.mark.parametrize("name", ["groups", "txn", "kraft-391", "kraft-430"])
def test_real_logs_print_as_kafkas_tool_prints_them(name: str) -> None:
    compared = 0
    for kind, invocation, text in invocations(name):
        args = invocation["args"]
        expected = {int(m[1]): m[2] for line in text.splitlines() if (m := LINE.match(line))}
        for path in args[args.index("--files") + 1].split(","):
            for offset, words in printed(name, path, kind, invocation["kafka"]):
                if words:
                    assert expected[offset] == words, (invocation["id"], offset)
                    compared += 1
    assert compared > 100


def test_decoders_of_other_releases_and_kinds_do_not_exist() -> None:
    wrong = [("share_group_state", "3.9.1"), ("offsets", "2.8.0"), ("nonsense", "4.3.0")]
    for kind, version in wrong:
        with pytest.raises(NoSuchDecoder) as caught:
            select_decoder(kind, version)
        assert (kind, version) == (caught.value.kind, caught.value.kafka_version)


@pytest.mark.parametrize(
    ("version", "words"), [("3.9.1", "offset topic decoder"), ("4.3.0", "the specified decoder")]
)
def test_record_without_key_ends_the_tool(version: str, words: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        select_decoder("offsets", version)(None, b"", 12)
    assert caught.value.java_class == "java.lang.RuntimeException"
    assert caught.value.java_message == (
        f"Failed to decode message at offset 12 using {words} (message had a missing key)"
    )


def test_control_record_without_value_ends_the_tool() -> None:
    with pytest.raises(ToolFailure, match="NullPointerException"):
        format_control_record("SnapshotHeaderRecord", None)


def test_control_record_is_printed_in_the_version_it_names() -> None:
    raw = struct.pack(">hi", 1, 7) + bytes.fromhex("02 00000007 00 01 00")
    assert format_control_record("LeaderChangeMessage", raw) == (
        '{"version":1,"leaderId":7,"voters":[{"voterId":7,"voterDirectoryId":'
        '"AAAAAAAAAAAAAAAAAAAAAA"}],"grantingVoters":[]}'
    )
