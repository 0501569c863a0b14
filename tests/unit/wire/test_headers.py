"""Headers of requests and responses, and the list of APIs."""

from __future__ import annotations

import pytest

from engine.wire.errors import (
    FrameTruncated,
    LengthOutOfBounds,
    UnknownMessage,
    WireVarintTooLong,
)
from engine.wire.headers import (
    RequestHeader,
    api,
    apis,
    encode_request_header,
    read_request_header,
    read_response_header,
    request_header_version,
    response_header_bytes,
    response_header_version,
)
from engine.wire.schema import RELEASES, Versions

V1 = bytes.fromhex("0003 0001 0000002a 0003") + b"cli"
V2 = bytes.fromhex("0003 000c 0000002a 0003") + b"cli" + b"\x00"


def test_classic_request_has_client_id_only() -> None:
    assert V1 == encode_request_header(3, 1, 42, "cli")
    assert RequestHeader(3, 1, 42, "cli", 13) == read_request_header(V1 + b"body")


def test_flexible_request_adds_a_tagged_section_but_keeps_the_plain_client_id() -> None:
    assert V2 == encode_request_header(3, 12, 42, "cli")
    assert RequestHeader(3, 12, 42, "cli", 14) == read_request_header(V2 + b"body")


def test_null_client_id_stays_null() -> None:
    raw = encode_request_header(3, 12, 1, None)
    assert read_request_header(raw).client_id is None


def test_first_controlled_shutdown_has_no_client_id() -> None:
    raw = encode_request_header(7, 0, 5, "ignored")
    assert len(raw) == 8
    assert RequestHeader(7, 0, 5, None, 8) == read_request_header(raw)
    assert RequestHeader(7, 0, 5, None, 8) == read_request_header(raw + bytes(4))
    assert request_header_version(7, 1) == 1


def test_unknown_tags_are_passed_over() -> None:
    tags = bytes.fromhex("02 05 03 616263 8801 01 78")
    raw = V2[:-1] + tags + b"body"
    assert len(V2) - 1 + len(tags) == read_request_header(raw).body_position


def test_version_that_does_not_exist_still_has_a_header() -> None:
    raw = encode_request_header(18, 99, 1, "x")
    assert read_request_header(raw).api_version == 99


def test_api_versions_response_never_has_tags() -> None:
    assert [0, 0] == [response_header_version(18, v) for v in (0, 4)]
    assert [0, 1] == [response_header_version(3, v) for v in (8, 9)]
    assert response_header_version(9999, 0) == 0


@pytest.mark.parametrize("key", [3, 18])
def test_response_header_goes_there_and_back(key: int) -> None:
    raw = response_header_bytes(key, 9 if key == 3 else 4, 7)
    assert (7, len(raw)) == read_response_header(raw + b"body", key, 9 if key == 3 else 4)


def test_response_header_passes_over_tags() -> None:
    raw = bytes.fromhex("00000007 01 00 02 ffff")
    assert (7, 9) == read_response_header(raw, 3, 12)


def test_unknown_key_is_refused() -> None:
    with pytest.raises(UnknownMessage):
        read_request_header(bytes.fromhex("03e7 0000 00000001 0000"))


@pytest.mark.parametrize("length", range(len(V2)))
def test_cut_request_header_is_truncated(length: int) -> None:
    with pytest.raises((FrameTruncated, LengthOutOfBounds)):
        read_request_header(V2[:length])


@pytest.mark.parametrize("length", range(5))
def test_cut_response_header_is_truncated(length: int) -> None:
    with pytest.raises(FrameTruncated):
        read_response_header(bytes(5)[:length], 3, 12)


def test_a_client_id_that_is_not_utf8_is_read_as_java_does() -> None:
    header = read_request_header(V1[:-1] + b"\xff")
    assert str(header.client_id).endswith("\ufffd")


def test_every_negative_client_id_length_is_null() -> None:
    header = read_request_header(bytes.fromhex("0003 0001 00000001 fffe"))
    assert (None, 10) == (header.client_id, header.body_position)


def test_endless_varint_is_refused() -> None:
    with pytest.raises(WireVarintTooLong):
        read_request_header(V2[:-1] + b"\xff" * 9)


def test_tag_larger_than_the_frame_is_refused() -> None:
    with pytest.raises(LengthOutOfBounds):
        read_request_header(V2[:-1] + bytes.fromhex("01 05 7f 61"))
    with pytest.raises(LengthOutOfBounds):
        read_response_header(bytes.fromhex("00000007 01 05 7f 61"), 3, 12)


def test_apis_are_found_by_key_and_by_name() -> None:
    assert api(3) == api("Metadata")
    assert Versions(0, 12) == api("Metadata").versions
    assert api(74, "4.3.0").name == "ListConfigResources"
    for unknown in (9999, "NoSuchApi"):
        with pytest.raises(UnknownMessage):
            api(unknown)


def test_unstable_versions_are_distinguished() -> None:
    assert (5, 6) == (api("InitProducerId", "4.3.0").stable.highest, api(22, "4.3.0").versions[1])


@pytest.mark.parametrize("release", RELEASES)
def test_requests_and_responses_have_the_same_versions(release: str) -> None:
    from engine.wire.schema import message_schema

    for known in apis(release).values():
        response = message_schema(f"{known.name}Response", release)
        assert known.versions == response.valid, known.name
        assert known.key == response.api_key, known.name
