r"""Subject of a certificate, as Java prints it.

```
CN=alice,O=Ex\, Inc.,C=DE          the last part of the name first
1.2.840.113549.1.9.1=#16056140…    a type that RFC 2253 has no word for: its value in hex
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
    der_value,
    der_values,
    object_identifier,
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
#: Kinds of strings: UTF-8, printable, T.61, IA5, general, BMP; the others are shown in hex. Java
#: takes the bytes of all of them for UTF-8.
_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
_ESCAPED: Final = frozenset(',=+<>#;"\\')
#: The tag of a certificate's version, before the name of its subject, if it has one.
_VERSION_TAG: Final = 0xA0
_BEFORE_SUBJECT: Final = 4
_EXTENSIONS_TAG: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
#: The bits of an alternative name's tag that are its kind; an address is one of them.
_KIND_MASK: Final = 0x1F
_ADDRESS: Final = 7


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate (DER); raises MalformedDer."""
    body = der_value(der_value(certificate, SEQUENCE).content, SEQUENCE)
    fields = [value for value in der_values(body.content) if value.tag != _VERSION_TAG]
    if len(fields) <= _BEFORE_SUBJECT:
        raise MalformedDer
    return distinguished_name(fields[_BEFORE_SUBJECT].raw)


def alternative_names(certificate: bytes) -> frozenset[str]:
    """Return the alternative names of a certificate (DER), each by its kind's number and text.

    Source: RFC 5280 §4.2.1.6; X509Certificate.getSubjectAlternativeNames. Raises MalformedDer.
    """
    body = der_value(der_value(certificate, SEQUENCE).content, SEQUENCE)
    for field in der_values(body.content):
        if field.tag != _EXTENSIONS_TAG:
            continue
        for extension in der_values(der_value(field.content, SEQUENCE).content):
            parts = list(der_values(extension.content))
            if len(parts) < 2 or object_identifier(parts[0].content) != _ALTERNATIVE_NAMES:
                continue
            names = der_values(der_value(parts[-1].content, SEQUENCE).content)
            return frozenset(_general_name(name) for name in names)
    return frozenset()


def _general_name(name: DerValue) -> str:
    """Return a subject alternative name as Java prints it: `[kind, name]`."""
    kind = name.tag & _KIND_MASK
    if kind == _ADDRESS and len(name.content) in (4, 16):
        return f"[{kind}, {_address_text(name.content)}]"
    return f"[{kind}, {name.content.decode('utf-8', 'replace')}]"


def _address_text(raw: bytes) -> str:
    """Return an address as Java prints it: all eight numbers of version 6."""
    if len(raw) == 4:
        return ".".join(map(str, raw))
    return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, len(raw), 2))


def distinguished_name(name: bytes) -> str:
    """Return a name (DER) as text; raises MalformedDer."""
    parts = list(der_values(der_value(name, SEQUENCE).content))
    return ",".join(_part(part) for part in reversed(parts))


def _part(part: DerValue) -> str:
    """Return one part (a SET of pairs of type and value) as text; raises MalformedDer."""
    if part.tag != SET:
        raise MalformedDer
    return "+".join(_pair(pair) for pair in der_values(part.content))


def _pair(pair: DerValue) -> str:
    """Return `KEYWORD=value`; values of other types as `#hex`. Raise MalformedDer."""
    values = list(der_values(pair.content))
    if len(values) != 2 or values[0].tag != OBJECT_IDENTIFIER:
        raise MalformedDer
    kind, value = object_identifier(values[0].content), values[1]
    keyword = _KEYWORDS.get(kind)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or kind}=#{value.raw.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    """Return a value escaped as Java does (RFC 2253): specials, and spaces at both ends."""
    escaped = "".join(
        f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text
    )
    inner = escaped.strip(" \r")
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    trailing = escaped[lead + len(inner) :] if inner else ""
    return "".join(f"\\{char}" for char in escaped[:lead]) + inner + _blanks(trailing)


def _blanks(text: str) -> str:
    """Return blanks at an end of a value, with a backslash before each."""
    return "".join(f"\\{char}" for char in text)
