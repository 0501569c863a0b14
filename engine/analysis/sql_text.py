"""Blank quoted texts and comments in a SQL statement, and find the ends of statements.

```
'…'  "…"    a backslash escapes the next character, a doubled quote means one quote
`…`         a doubled backtick means one backtick
--          a comment up to the end of the line
/* … */     a comment, which may be nested
```

Source: Spark's SqlBaseLexer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUOTED = {
    "'": re.compile(r"'(?:[^'\\]|\\.)*(?:'|\Z)", re.S),
    '"': re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)', re.S),
    "`": re.compile(r"`[^`]*(?:`|\Z)"),
}
_START = re.compile(r"['\"`]|--|/\*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def without_texts(query: str) -> str:
    """Return a query with each string, quoted name and comment replaced by a blank."""
    return _blank_comments(query, keeps_quoted=False)


def without_comments(query: str) -> str:
    """Return a query with each comment replaced by a blank."""
    return _blank_comments(query, keeps_quoted=True)


def quoted_texts(query: str) -> Iterator[str]:
    """Yield each string and quoted name outside of comments, including its quotes."""
    position = 0
    while start := _START.search(query, position):
        position = _end_of(query, start)
        if start[0] in _QUOTED:
            yield query[start.start() : position]


def escape_doubled_quotes(query: str) -> str:
    """Return a query with each doubled quote in a string replaced by backslash and quote."""
    parts: list[str] = []
    position, quote = 0, ""
    while start := _START.search(query, position):
        end, between = _end_of(query, start), query[position : start.start()]
        if quote and start[0] == quote and not between:
            # The string before ends where this one starts: the two are one string.
            parts[-1] = parts[-1][:-1] + "\\" + query[start.start() : end]
        else:
            parts += (between, query[start.start() : end])
        is_raw = between[-1:] in ("r", "R")
        quote = start[0] if start[0] in ("'", '"') and not is_raw else ""
        position = end
    return "".join((*parts, query[position:]))


def text_start(text: str) -> int:
    """Return the position at which a statement begins, after blanks and comments."""
    position = 0
    while True:
        position += len(text[position:]) - len(text[position:].lstrip())
        start = _START.match(text, position)
        if start is None or start[0] in _QUOTED:
            return position
        position = _end_of(text, start)


def one_statement(text: str) -> str:
    """Return a statement without its final semicolon; unchanged if another statement follows."""
    end = statement_end(text)
    is_last = end is not None and not without_texts(text[end + 1 :]).strip("; \n\t\r")
    return (text[:end] if is_last else text).strip()


def _blank_comments(query: str, *, keeps_quoted: bool) -> str:
    """Return a query with each comment replaced by a blank.

    Strings and quoted names are replaced, too, unless `keeps_quoted`.
    """
    parts: list[str] = []
    position = 0
    while start := _START.search(query, position):
        end = _end_of(query, start)
        is_kept = keeps_quoted and start[0] in _QUOTED
        parts += (query[position : start.start()], query[start.start() : end] if is_kept else " ")
        position = end
    return "".join((*parts, query[position:]))


def statement_end(text: str) -> int | None:
    """Return the position of the first semicolon outside of strings and comments, else None."""
    position = text.find(";")
    while position >= 0:
        # A semicolon in an unclosed string or comment is blanked.
        if without_texts(text[: position + 1]).endswith(";"):
            return position
        position = text.find(";", position + 1)
    return None


def _end_of(query: str, start: re.Match[str]) -> int:
    """Return the position after the quoted part or comment of a query that starts at a match.

    It is the end of the query if that part is not closed. Comments `/* */` may be nested.
    """
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
