"""Names of certificates, as Java prints them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from engine.der import MalformedDer, iter_der_values, read_object_identifier
from engine.security.distinguished_name import alternative_names, distinguished_name, subject_of

_PRINTED = json.loads(Path(__file__).with_name("distinguished_names_jdk17.json").read_text())
_STORES = Path(__file__).parents[1] / "host" / "tls" / "stores"


@pytest.mark.parametrize(("name", "printed"), _PRINTED)
def test_a_name_is_printed_as_java_prints_it(name: str, printed: str) -> None:
    assert printed == distinguished_name(b64decode(name))


def _broker_certificate() -> bytes:
    _, _, text = (_STORES / "broker-all.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    return b64decode(text.partition("-----END")[0])


def test_the_hosts_of_a_certificate_are_printed_as_java_prints_them() -> None:
    assert {"[2, localhost]", "[7, 127.0.0.1]"} == alternative_names(_broker_certificate())


def _der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    return bytes([tag, len(content)]) + content


@pytest.mark.parametrize(
    ("kind", "content", "printed"),
    [
        (7, bytes.fromhex("20010db8000000000000000000000001"), "[7, 2001:db8:0:0:0:0:0:1]"),
        (7, bytes([10, 0, 0, 1]), "[7, 10.0.0.1]"),
        # No address: an odd number of bytes, as only a broken authority writes.
        (7, b"abcde", "[7, abcde]"),
        (1, b"a@b", "[1, a@b]"),
    ],
)
def test_each_kind_of_host_is_printed(kind: int, content: bytes, printed: str) -> None:
    names = _der(0x30, _der(0x80 | kind, content))
    extension = _der(0x30, _der(6, bytes.fromhex("551d11")), _der(4, names))
    certificate = _der(0x30, _der(0x30, _der(0xA3, _der(0x30, extension))))
    assert {printed} == alternative_names(certificate)


def test_the_subject_of_a_certificate_is_whom_it_is_for() -> None:
    certificate = _broker_certificate()
    assert "CN=broker,O=Kafka,C=DE" == subject_of(certificate)
    for size in range(len(certificate)):
        with pytest.raises(MalformedDer):
            subject_of(certificate[:size])


@pytest.mark.parametrize("raw", [b"\x30", b"\x30\x05\x00", b"\x1f\x01\x00", b"\x30\x80\x00\x00"])
def test_bytes_that_are_no_der_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedDer):
        list(iter_der_values(raw))


def test_identifiers_are_numbers_with_dots() -> None:
    assert "1.2.840.113549.1.9.1" == read_object_identifier(bytes.fromhex("2a864886f70d010901"))
    assert "2.999.3" == read_object_identifier(bytes.fromhex("883703"))
    for raw in (b"", b"\x81"):
        with pytest.raises(MalformedDer):
            read_object_identifier(raw)
