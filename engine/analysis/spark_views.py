"""The views `records`, `batches` and `segments` over log directories, for SQL on Spark.

A view reads only the columns that the query can need: those whose names stand in its text (all,
if a star does). Reading too many costs time, reading too few cannot happen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from engine.analysis.columns import VIEWS, ViewColumn, spark_schema
from engine.analysis.record_batches import view_batches
from engine.analysis.splits import Split, decode_splits, encode_splits, pack_splits
from engine.host.real import RealFiles

_WORD = re.compile(r"\w+")
_COUNT_STAR = re.compile(r"count\s*\(\s*\*\s*\)", re.I)
_TEXT_OR_COMMENT = re.compile(r"'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/", re.S)


def columns_named(query: str, columns: tuple[ViewColumn, ...]) -> tuple[ViewColumn, ...]:
    """Return the columns that a query can need; at least one, to count by."""
    text = _COUNT_STAR.sub("count", without_texts(query))
    words = {word.lower() for word in _WORD.findall(text)}
    # A product's star is taken for all columns too: it costs time and nothing else.
    if "*" in text or "natural" in words or "using" in words:
        return columns
    named = tuple(column for column in columns if column.name.lower() in words)
    cheapest = next(c for c in columns if c.name in ("offset", "position", "baseOffset"))
    return named or (cheapest,)


def without_texts(query: str) -> str:
    """Return a query with a blank for each quoted text and comment."""
    return _TEXT_OR_COMMENT.sub(" ", query)


def register_views(
    session: Any, query: str | None, splits: list[Split], *, control: bool
) -> list[str]:
    """Make the views that a query names, None for all of them whole; returns their names."""
    text = None if query is None else without_texts(query).lower()
    named = [name for name in VIEWS if text is None or re.search(rf"\b{name}\b", text)]
    context = session.sparkContext
    for name in named:
        columns = VIEWS[name] if query is None else columns_named(query, VIEWS[name])
        pieces = _whole_segments(splits) if name == "segments" else splits
        groups = pack_splits(pieces, context.defaultParallelism)
        rows = [(encode_splits(group),) for group in groups]
        frame = session.createDataFrame(context.parallelize(rows, len(rows)), "splits string")
        read = partial(_read_view, name, columns, control)
        frame.mapInArrow(read, spark_schema(columns)).createOrReplaceTempView(name)
    return named


def _whole_segments(splits: list[Split]) -> list[Split]:
    """Return one split a segment: what says something of a segment has to see all of it."""
    ends = {split.path: split.end for split in splits if split.is_last}
    return [
        split._replace(end=ends[split.path], is_last=True) for split in splits if split.start == 0
    ]


def _read_view(
    view: str, columns: tuple[ViewColumn, ...], control: bool, groups: Iterator[Any]
) -> Iterator[Any]:
    """Run as a Spark task: Arrow batches of splits in, rows of the view out."""
    from engine.analysis.worker import calm_worker

    calm_worker()
    files = RealFiles()
    for batch in groups:
        for row in batch.to_pylist():
            for split in decode_splits(row["splits"]):
                yield from view_batches(files, view, columns, split, control=control)
