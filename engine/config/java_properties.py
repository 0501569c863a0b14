r"""Java's properties files: `server.properties`, `meta.properties`, settings of clients.

```
# or !            a comment
key=value         also with : or white space between them
key\              a line that ends with a backslash continues, without the next line's indent
\t \n \r \f \u00e9   escapes; \ before any other character stands for it
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
#: What separates a key, or begins a comment: in a value they stand for themselves.
_SEPARATORS = "=:#!"
_UNICODE_DIGITS = 4
_HEX = frozenset("0123456789abcdefABCDEF")
# Java makes the table of a Properties with this many buckets and doubles it at three quarters
# (ConcurrentHashMap.addCount).
_BUCKETS_MIN = 16


def parse_properties(content: bytes, path: str) -> dict[str, str]:
    """Return keys and values; of two lines for one key the last counts. Raises CorruptFile."""
    properties = {}
    for line in _logical_lines(content.decode("latin-1")):
        end = _key_end(line)
        rest = line[end:].lstrip(_SPACE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACE)
        properties[_unescaped(line[:end], path)] = _unescaped(rest, path)
    return properties


def encode_properties(entries: Mapping[str, str], comment_lines: tuple[str, ...]) -> bytes:
    """Return a file's content, entries in the order in which Java writes them."""
    lines = [f"#{comment}" for comment in comment_lines]
    for key in java_order(entries):
        lines.append(f"{_escaped(key, in_key=True)}={_escaped(entries[key], in_key=False)}")
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def encode_settings(entries: Mapping[str, str]) -> bytes:
    """Return the content of a file for people, too: entries in their order, few escapes."""
    lines = (
        f"{_escaped(key, in_key=True)}={_escaped(value, in_key=False, spared=_SEPARATORS)}\n"
        for key, value in entries.items()
    )
    return "".join(lines).encode("latin-1")


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blanks, continuations joined."""
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


def _key_end(line: str) -> int:
    """Return the index of the first unescaped `=`, `:` or space, else the line's length."""
    escaped = False
    for index, character in enumerate(line):
        if not escaped and (character in "=:" or character in _SPACE):
            return index
        escaped = character == "\\" and not escaped
    return len(line)


def _unescaped(text: str, path: str) -> str:
    """Return the text with backslash escapes replaced; raise CorruptFile at an incomplete one."""
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
            raise CorruptFile(path, "four hexadecimal digits behind \\u", repr(digits))
        parts.append(chr(int(digits, 16)))
        index += _UNICODE_DIGITS
    # An escape is half of a character beyond 16 bits.
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escaped(text: str, *, in_key: bool, spared: str = "") -> str:
    """Return the text with escapes; keys escape every space, values only a leading one.

    Printable characters in `spared` are not escaped.
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


def java_order(keys: Iterable[str]) -> list[str]:
    """Return the keys by hash bucket, as Java's table of properties gives them out.

    Differs: two keys in one bucket come in the order given; in Java it also depends on when the
    table grew.
    """
    ordered = list(keys)
    buckets = _BUCKETS_MIN
    while len(ordered) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(ordered, key=lambda key: _bucket(key, buckets))


def _bucket(key: str, buckets: int) -> int:
    """Return the bucket of a key in a hash map of Java."""
    hashed = java_string_hash(key) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & (buckets - 1)
