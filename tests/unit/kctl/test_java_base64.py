"""Base64 as Java reads it: what both decoders of Java 17 made of these texts."""

from __future__ import annotations

import pytest

from kctl.compat.java_base64 import decoded, decoded_url
from kctl.compat.java_failures import ToolFailure

_UNIT = "Input byte array has wrong 4-byte ending unit"
_BITS = "Last unit does not have enough valid bits"
_END = "Input byte array has incorrect ending byte at"
_SHORT = "Input byte[] should at least have 2 bytes for base64 bytes"
_OF_JAVA: dict[str, bytes | str] = {
    "": b"", "QQ": b"A", "QQ==": b"A", "QR==": b"A", "QUI": b"AB", "QUI=": b"AB", "QUJD": b"ABC",
    "Q": _SHORT, "=": _SHORT, "QUJDQ": _BITS, "Q=": _BITS, "Q==": _BITS, "Q=Q": _BITS,
    "==": _UNIT, "====": _UNIT, "QQ=": _UNIT, "QQ=Q": _UNIT, "QUJD=": _UNIT, "QUJD====": _UNIT,
    "QQ===": f"{_END} 4", "QQ==QQ==": f"{_END} 4", "QUI==": f"{_END} 4", "QUI=QUI=": f"{_END} 4",
    "Q Q=": "Illegal base64 character 20", "QQ\n": "Illegal base64 character a",
    "QQ\u00fc": "Illegal base64 character -4", "QQ\u4e00": "Illegal base64 character 3f",
}  # fmt: skip


@pytest.mark.parametrize("text", _OF_JAVA)
def test_a_text_is_decoded_or_refused_as_by_java(text: str) -> None:
    expected = _OF_JAVA[text]
    for decode in (decoded, decoded_url):
        if isinstance(expected, bytes):
            assert expected == decode(text)
        else:
            with pytest.raises(ToolFailure) as caught:
                decode(text)
            assert expected == str(caught.value)


def test_each_alphabet_has_two_characters_of_its_own() -> None:
    assert decoded("+/+/") == decoded_url("-_-_") == bytes.fromhex("fbffbf")
    for text, decode in (("+/+/", decoded_url), ("-_-_", decoded)):
        with pytest.raises(ToolFailure, match="Illegal base64 character"):
            decode(text)
