"""The text of a SQL statement without what only looks like a part of it.

```
'…'  "…"    a backslash takes the next character, a doubled quote stands for one
`…`         a doubled backtick stands for one
--          a comment up to the end of the line
/* … */     a comment, in which others may be
```

Source: Spark's SqlBaseLexer.
"""

from __future__ import annotations

import re

_QUOTED = {
    "'": re.compile(r"'(?:[^'\\]|\\.)*(?:'|\Z)", re.S),
    '"': re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)', re.S),
    "`": re.compile(r"`[^`]*(?:`|\Z)"),
}
_START = re.compile(r"['\"`]|--|/\*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def without_texts(query: str) -> str:
    """Return a query with a blank for each quoted text, quoted name and comment."""
    parts: list[str] = []
    position = 0
    while start := _START.search(query, position):
        parts += (query[position : start.start()], " ")
        position = _end_of(query, start)
    return "".join((*parts, query[position:]))


def statement_end(text: str) -> int | None:
    """Return where the first semicolon outside of texts and comments is, None without one."""
    position = text.find(";")
    while position >= 0:
        # A text that is not closed runs to the end, and takes the semicolon with it.
        if without_texts(text[: position + 1]).endswith(";"):
            return position
        position = text.find(";", position + 1)
    return None


def _end_of(query: str, start: re.Match[str]) -> int:
    """Return where the text or comment ends that starts at a match."""
    if start[0] in _QUOTED:
        quoted = _QUOTED[start[0]].match(query, start.start())
        return len(query) if quoted is None else quoted.end()
    if start[0] == "--":
        end = query.find("\n", start.end())
        return len(query) if end < 0 else end
    depth, position = 1, start.end()
    while depth:
        edge = _COMMENT_EDGE.search(query, position)
        if edge is None:
            return len(query)
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
    return position
