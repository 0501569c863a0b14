r"""Java's properties files: `server.properties`, `meta.properties`, client settings.

```
# or !            a comment
key=value         the separator may also be : or white space
key\              a line that ends with a backslash continues, without the next line's indent
\t \n \r \f \u00e9   escapes; \ before any other character is dropped
```

Source: java.util.Properties (load reads ISO 8859-1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.errors import CorruptFile
from engine.java_text import java_string_hash

_SPACE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN_ESCAPES = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
#: Characters that separate keys or begin comments; they need no escape in values.
_SEPARATORS = "=:#!"
_UNICODE_DIGITS = 4
_HEX = frozenset("0123456789abcdefABCDEF")
# Java creates a Properties object with this many buckets, and doubles them when three quarters are
# used (ConcurrentHashMap.addCount).
_BUCKETS_MIN = 16


def parse_properties(content: bytes, path: str) -> dict[str, str]:
    """Return the keys and values of a Java properties file; the last line of a key counts.

    Raises CorruptFile, in which `path` is named.
    """
    properties = {}
    for line in _iter_logical_lines(content.decode("latin-1")):
        end = _find_key_end(line)
        rest = line[end:].lstrip(_SPACE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACE)
        properties[_unescaped(line[:end], path)] = _unescaped(rest, path)
    return properties


def encode_properties(entries: Mapping[str, str], comment_lines: tuple[str, ...]) -> bytes:
    """Return the content of a properties file, with the entries in the order that Java writes."""
    lines = [f"#{comment}" for comment in comment_lines]
    for key in sort_in_java_order(entries):
        lines.append(f"{_escaped(key, in_key=True)}={_escaped(entries[key], in_key=False)}")
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def encode_settings(entries: Mapping[str, str]) -> bytes:
    """Return the content of a properties file that people read too.

    The entries are in the given order, and few characters are escaped.
    """
    lines = (
        f"{_escaped(key, in_key=True)}={_escaped(value, in_key=False, spared=_SEPARATORS)}\n"
        for key, value in entries.items()
    )
    return "".join(lines).encode("latin-1")


def _iter_logical_lines(text: str) -> Iterator[str]:
    """Yield the lines of a file without comments and blank lines; continued lines are joined."""
    pending = ""
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_SPACE)
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _find_key_end(line: str) -> int:
    """Return the index of the first `=`, `:` or space in a line that is not escaped.

    The line's length if there is none.
    """
    escaped = False
    for index, character in enumerate(line):
        if not escaped and (character in "=:" or character in _SPACE):
            return index
        escaped = character == "\\" and not escaped
    return len(line)


def _unescaped(text: str, path: str) -> str:
    """Return a text with its backslash escapes replaced.

    Raises CorruptFile for an incomplete one.
    """
    parts = []
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character != "\\" or index == len(text):
            parts.append(character)
            continue
        escape = text[index]
        index += 1
        if escape != "u":
            parts.append(_ESCAPES.get(escape, escape))
            continue
        digits = text[index : index + _UNICODE_DIGITS]
        if len(digits) < _UNICODE_DIGITS or not _HEX.issuperset(digits):
            raise CorruptFile(path, "four hexadecimal digits after \\u", repr(digits))
        parts.append(chr(int(digits, 16)))
        index += _UNICODE_DIGITS
    # An escape is half of a character beyond 16 bits.
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escaped(text: str, *, in_key: bool, spared: str = "") -> str:
    """Return a text with the escapes of a properties file.

    In keys each space is escaped, in values only a leading one. Printable characters in `spared`
    are not escaped.
    """
    parts = []
    for index, character in enumerate(text):
        if character == " ":
            parts.append("\\ " if in_key or not index else " ")
        elif character in _WRITTEN_ESCAPES and character not in spared:
            parts.append(_WRITTEN_ESCAPES[character])
        elif " " <= character <= "~":
            parts.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass").hex().upper()
            parts += [f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)]
    return "".join(parts)


def sort_in_java_order(keys: Iterable[str]) -> list[str]:
    """Return the keys in hash order, in which Java iterates over a Properties object.

    Differs: two keys in one bucket keep the given order; in Java it also depends on when the table
    grew.
    """
    ordered = list(keys)
    buckets = _BUCKETS_MIN
    while len(ordered) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(ordered, key=lambda key: _bucket(key, buckets))


def _bucket(key: str, buckets: int) -> int:
    """Return the index of a key's bucket in a Java hash map with this number of buckets."""
    hashed = java_string_hash(key) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & (buckets - 1)
