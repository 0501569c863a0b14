"""Sums over records by group, computed in each task before a report's query sums them up.

| engine | `record_totals` in the report's query |
|---|---|
| embedded | a subquery over `records` |
| Spark | partial sums that each task makes of its Arrow batches; a group may have several rows |

Otherwise Spark would transfer each record from Python to its JVM to sum it up there. As a report
uses `sum(records)`, both engines have the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.limits import ARROW_BATCH_BYTES, ARROW_BATCH_RECORDS_MAX

if TYPE_CHECKING:
    import pyarrow as pa

#: Name of the table of totals in a report's query.
RECORD_TOTALS: Final = "record_totals"
#: With groups below forty bytes the limit on rows is reached first.
_KEPT_BYTES_MAX: Final = 2 * ARROW_BATCH_BYTES


class Term(NamedTuple):
    """A value of each record: as SQL, and computed from the columns of an Arrow batch.

    `type` is a word of `column_types.py`; the type of sums is long.
    """

    name: str
    sql: str
    columns: tuple[str, ...]
    of_batch: Callable[[pa.RecordBatch], pa.Array]
    type: str = "long"


class Totals(NamedTuple):
    """Sums of some terms for each group of records; `has_key` excludes records without a key."""

    groups: tuple[Term, ...]
    sums: tuple[Term, ...]
    has_key: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of `records` that the sums need, each once."""
        of_terms = (column for term in (*self.groups, *self.sums) for column in term.columns)
        return tuple(dict.fromkeys((*of_terms, *(("key",) if self.has_key else ()))))

    def query(self) -> str:
        """Return the sums as a query over `records`, in Spark's SQL."""
        terms = [
            *(f"{term.sql} {term.name}" for term in self.groups),
            *(f"sum({term.sql}) {term.name}" for term in self.sums),
        ]
        condition = " where key is not null" if self.has_key else ""
        groups = ", ".join(term.sql for term in self.groups)
        return f"select {', '.join(terms)} from records{condition} group by {groups}"


def sum_by_group(totals: Totals, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sums over batches by group; several rows may belong to one group.

    The report's query adds these up. At most ARROW_BATCH_RECORDS_MAX groups or _KEPT_BYTES_MAX
    bytes are kept, plus those of one batch.
    """
    kept: list[pa.Table] = []
    for batch in batches:
        kept.append(_sum_table(totals, _terms_of(totals, batch)))
        if _share_kept(kept) > 1:
            kept = [_merge_sums(totals, kept)]
            if _share_kept(kept) > 1 / 2:
                # Nearly every record is a separate group: summing up saves little.
                yield from kept.pop().to_batches()
    if kept:
        yield from _merge_sums(totals, kept).to_batches()


def _share_kept(tables: list[pa.Table]) -> float:
    """Return how much of the limits on rows and bytes is used; above 1 one is exceeded."""
    rows: int = sum(table.num_rows for table in tables)
    size_bytes: int = sum(table.nbytes for table in tables)
    return max(rows / ARROW_BATCH_RECORDS_MAX, size_bytes / _KEPT_BYTES_MAX)


def _terms_of(totals: Totals, batch: pa.RecordBatch) -> pa.Table:
    """Return the grouping and summed columns of a batch, without null keys if keys are needed."""
    import pyarrow as pa

    if totals.has_key:
        batch = batch.filter(batch.column("key").is_valid())
    terms = (*totals.groups, *totals.sums)
    return pa.table({term.name: term.of_batch(batch) for term in terms})


def _merge_sums(totals: Totals, tables: list[pa.Table]) -> pa.Table:
    """Sum up several tables of sums: one row for each group."""
    import pyarrow as pa

    return tables[0] if len(tables) == 1 else _sum_table(totals, pa.concat_tables(tables))


def _sum_table(totals: Totals, table: pa.Table) -> pa.Table:
    """Sum a table's rows by group: one row for each group."""
    groups = [term.name for term in totals.groups]
    sums = [term.name for term in totals.sums]
    summed = table.group_by(groups, use_threads=False).aggregate([(name, "sum") for name in sums])
    return summed.select([*groups, *(f"{name}_sum" for name in sums)]).rename_columns(
        table.schema.names
    )


def column(name: str, type_name: str) -> Term:
    """Return the term of a sum that is a column of `records`."""
    return Term(name, name, (name,), lambda batch: batch.column(name), type_name)


def _ones(batch: pa.RecordBatch) -> pa.Array:
    """Return 1 for each record: its sum is the count."""
    import pyarrow as pa

    return pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)


def _record_bytes(batch: pa.RecordBatch) -> pa.Array:
    """Return the bytes of key and value of each record; null, whose size is -1, counts as 0."""
    import pyarrow.compute as pc

    sizes = (batch.column(name).cast("int64") for name in ("key_size", "value_size"))
    return pc.add(*(pc.max_element_wise(size, 0) for size in sizes))


def _record_hours(batch: pa.RecordBatch) -> pa.Array:
    """Return the UTC hour of each record's timestamp."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # With a zone Arrow would need a time zone database, which not every machine has.
    times = batch.column("timestamp").cast(pa.timestamp("us"))
    return pc.floor_temporal(times, unit="hour").cast(pa.timestamp("us", "UTC"))


def _without_key(batch: pa.RecordBatch) -> pa.Array:
    """Return 1 for each record with a null key (size -1), else 0."""
    import pyarrow.compute as pc

    return pc.less(batch.column("key_size"), 0).cast("int64")


def _empty_values(batch: pa.RecordBatch) -> pa.Array:
    """Return 1 for each record with an empty value, else 0; a tombstone (size -1) counts as 0."""
    import pyarrow.compute as pc

    return pc.equal(batch.column("value_size"), 0).cast("int64")


TOPIC: Final = column("topic", "string")
KEY: Final = column("key", "binary")
VALUE_SIZE: Final = column("value_size", "int")
HOUR: Final = Term(
    "hour", "date_trunc('hour', timestamp)", ("timestamp",), _record_hours, "timestamp"
)
RECORD_COUNT: Final = Term("records", "1", ("topic",), _ones)
RECORD_BYTES: Final = Term(
    "bytes",
    "greatest(key_size, 0) + greatest(value_size, 0)",
    ("key_size", "value_size"),
    _record_bytes,
)
TOMBSTONES: Final = Term(
    "tombstones",
    "cast(is_tombstone as int)",
    ("is_tombstone",),
    lambda batch: batch.column("is_tombstone").cast("int64"),
)
WITHOUT_KEY: Final = Term("without_key", "cast(key_size < 0 as int)", ("key_size",), _without_key)
EMPTY_VALUES: Final = Term(
    "empty_values", "cast(value_size = 0 as int)", ("value_size",), _empty_values
)
