r"""The subject of a certificate in Java's format.

```
CN=alice,O=Ex\, Inc.,C=DE          the last part of the name first
1.2.840.113549.1.9.1=#16056140…    a type without a keyword in RFC 2253: the value in hex
```

Source: RFC 2253; X500Principal.getName, sun.security.x509.AVA.toRFC2253String of JDK 17.
"""

from __future__ import annotations

from typing import Final

from engine.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    DerValue,
    MalformedDer,
    iter_der_values,
    read_der_value,
    read_object_identifier,
)

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
#: String types: UTF-8, printable, T.61, IA5, general, BMP; other types are shown in hex. Java
#: decodes all of them as UTF-8.
_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
_ESCAPED: Final = frozenset(',=+<>#;"\\')
#: The tag of the optional version field of a certificate.
_VERSION_TAG: Final = 0xA0
_BEFORE_SUBJECT: Final = 4
_EXTENSIONS_TAG: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
#: The bits of an alternative name's tag that give its kind, and the kind of an IP address.
_KIND_MASK: Final = 0x1F
_ADDRESS: Final = 7


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate (DER) in Java's format; raises MalformedDer."""
    body = read_der_value(read_der_value(certificate, SEQUENCE).content, SEQUENCE)
    fields = [value for value in iter_der_values(body.content) if value.tag != _VERSION_TAG]
    if len(fields) <= _BEFORE_SUBJECT:
        raise MalformedDer
    return distinguished_name(fields[_BEFORE_SUBJECT].raw)


def alternative_names(certificate: bytes) -> frozenset[str]:
    """Return the subject alternative names of a certificate (DER) in Java's format.

    Empty without any. Raises MalformedDer.

    Source: RFC 5280 §4.2.1.6; X509Certificate.getSubjectAlternativeNames. Raises MalformedDer.
    """
    body = read_der_value(read_der_value(certificate, SEQUENCE).content, SEQUENCE)
    for field in iter_der_values(body.content):
        if field.tag != _EXTENSIONS_TAG:
            continue
        for extension in iter_der_values(read_der_value(field.content, SEQUENCE).content):
            parts = list(iter_der_values(extension.content))
            if len(parts) < 2 or read_object_identifier(parts[0].content) != _ALTERNATIVE_NAMES:
                continue
            names = iter_der_values(read_der_value(parts[-1].content, SEQUENCE).content)
            return frozenset(_general_name(name) for name in names)
    return frozenset()


def _general_name(name: DerValue) -> str:
    """Return a subject alternative name in Java's format: `[kind, name]`."""
    kind = name.tag & _KIND_MASK
    if kind == _ADDRESS and len(name.content) in (4, 16):
        return f"[{kind}, {_address_text(name.content)}]"
    return f"[{kind}, {name.content.decode('utf-8', 'replace')}]"


def _address_text(raw: bytes) -> str:
    """Return an IP address in Java's format: IPv6 with all eight numbers."""
    if len(raw) == 4:
        return ".".join(map(str, raw))
    return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, len(raw), 2))


def distinguished_name(name: bytes) -> str:
    """Return an encoded name (DER) as text in Java's format; raises MalformedDer."""
    parts = list(iter_der_values(read_der_value(name, SEQUENCE).content))
    return ",".join(_part_text(part) for part in reversed(parts))


def _part_text(part: DerValue) -> str:
    """Return one part of a name, a SET of (type, value) pairs, as text; raises MalformedDer."""
    if part.tag != SET:
        raise MalformedDer
    return "+".join(_pair_text(pair) for pair in iter_der_values(part.content))


def _pair_text(pair: DerValue) -> str:
    """Return a pair as `KEYWORD=value`; unknown types or values as `#hex`. Raises MalformedDer."""
    values = list(iter_der_values(pair.content))
    if len(values) != 2 or values[0].tag != OBJECT_IDENTIFIER:
        raise MalformedDer
    kind, value = read_object_identifier(values[0].content), values[1]
    keyword = _KEYWORDS.get(kind)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or kind}=#{value.raw.hex()}"
    return f"{keyword}={_escape_value(value.content.decode('utf-8', 'replace'))}"


def _escape_value(text: str) -> str:
    """Return a value with Java's escapes (RFC 2253).

    Special characters and the spaces at both ends are escaped.
    """
    escaped = "".join(
        f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text
    )
    inner = escaped.strip(" \r")
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    trailing = escaped[lead + len(inner) :] if inner else ""
    return "".join(f"\\{char}" for char in escaped[:lead]) + inner + _escape_each(trailing)


def _escape_each(text: str) -> str:
    """Return a text with a backslash before each character."""
    return "".join(f"\\{char}" for char in text)
