"""Names of certificates, as Java prints them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from engine.der import MalformedDer, der_values, object_identifier
from engine.security.distinguished_name import distinguished_name, subject_of

_PRINTED = json.loads(Path(__file__).with_name("distinguished_names_jdk17.json").read_text())
_STORES = Path(__file__).parents[1] / "host" / "tls" / "stores"


@pytest.mark.parametrize(("name", "printed"), _PRINTED)
def test_a_name_is_printed_as_java_prints_it(name: str, printed: str) -> None:
    assert printed == distinguished_name(b64decode(name))


def test_the_subject_of_a_certificate_is_whom_it_is_for() -> None:
    _, _, text = (_STORES / "broker-all.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    certificate = b64decode(text.partition("-----END")[0])
    assert "CN=broker,O=Kafka,C=DE" == subject_of(certificate)
    for size in range(len(certificate)):
        with pytest.raises(MalformedDer):
            subject_of(certificate[:size])


@pytest.mark.parametrize("raw", [b"\x30", b"\x30\x05\x00", b"\x1f\x01\x00", b"\x30\x80\x00\x00"])
def test_bytes_that_are_no_der_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedDer):
        list(der_values(raw))


def test_identifiers_are_numbers_with_dots() -> None:
    assert "1.2.840.113549.1.9.1" == object_identifier(bytes.fromhex("2a864886f70d010901"))
    assert "2.999.3" == object_identifier(bytes.fromhex("883703"))
    for raw in (b"", b"\x81"):
        with pytest.raises(MalformedDer):
            object_identifier(raw)
