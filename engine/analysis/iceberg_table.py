"""An Iceberg table that exports append to, through the library `pyiceberg`.

```
OUT/catalog.db     the catalog `kctl`, SQLite; the table in it is kafka.records
OUT/metadata/      versions of the metadata, manifests
OUT/data/          Parquet files
```

The form of the export, the number of the last run and the end offsets are properties of the table
(`kctl.export`, `kctl.run`, `kctl.partitions`), set by the transaction that adds the files. One SQL
transaction then makes the catalog refer to the new metadata.

Iceberg's metadata contains absolute paths: the folder cannot be moved.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.analysis.appending import AppendMismatch
from engine.analysis.table_format import (
    Ends,
    TableColumns,
    TableFailed,
    TableFile,
    TableState,
    parse_stored_form,
)
from engine.errors import EngineError

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table

CATALOG, NAMESPACE, TABLE = "kctl", "kafka", "kafka.records"
_FORM, _RUN, _ENDS = "kctl.export", "kctl.run", "kctl.partitions"


class WrongTablePath(EngineError):
    """A folder's path contains a character that Iceberg's file addresses cannot contain."""

    exit_code = 2
    hint = "choose a folder without ? and # in its path for --out"

    def __init__(self, out: str) -> None:
        super().__init__(f"an Iceberg table cannot be in {out}")
        self.out = out


class Iceberg:
    """The Iceberg table in a local folder; the constructor raises WrongTablePath."""

    mark = "catalog.db"
    data_folder = "data/"

    def __init__(self, out: str) -> None:
        if "?" in out or "#" in out:
            raise WrongTablePath(out)
        self._out = out
        self._address = f"file://{out}"

    @contextmanager
    def _open_catalog(self) -> Iterator[SqlCatalog]:
        """Open the SQLite catalog of the Iceberg table for the block.

        Errors of the libraries become TableFailed.
        """
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy.engine import URL

        # Not as a URL text, in which % and other characters would be parsed.
        uri = URL.create("sqlite", database=f"{self._out}/{self.mark}")
        try:
            catalog = SqlCatalog(CATALOG, uri=uri, warehouse=self._address)
            try:
                yield catalog
            finally:
                catalog.close()
        except EngineError:
            raise
        except Exception as error:
            # The errors of pyiceberg and of the libraries below it have no common class.
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            failure = TableFailed(self._out, reason)
            if isinstance(error, FileNotFoundError):
                failure.hint = "its files have absolute paths: if it was moved, move it back"
            raise failure from error

    def state(self, partitions: Iterable[tuple[str, int]]) -> TableState | None:
        """Return what earlier exports stored in the Iceberg table; see `Table`.

        None without a table. Raises AppendMismatch for a table that no export made, or a copy of
        one.
        """
        if not os.path.exists(f"{self._out}/{self.mark}"):
            return None
        with self._open_catalog() as catalog:
            if not catalog.table_exists(TABLE):
                return None
            table = catalog.load_table(TABLE)
        if _FORM not in table.properties:
            raise AppendMismatch(self._out, "no export made this table")
        if table.location() != self._address:
            made_in = table.location().removeprefix("file://")
            raise AppendMismatch(self._out, f"it is a copy of the table in {made_in}")
        return self._parse_state(table.properties)

    def _parse_state(self, properties: Mapping[str, str]) -> TableState:
        """Return the state in the table's properties; raises AppendMismatch if it is incomplete."""
        form = parse_stored_form(self._out, properties[_FORM])
        try:
            listed = json.loads(properties[_ENDS])
            ends = {(topic, int(number)): int(end) for topic, number, end in listed}
            return TableState(form, int(properties[_RUN]), ends)
        except (KeyError, TypeError, ValueError) as error:
            reason = "its properties do not say how far it came"
            raise AppendMismatch(self._out, reason) from error

    def check(self, columns: TableColumns) -> None:
        """Raise AppendMismatch unless the Iceberg table has the columns; see `Table`."""
        with self._open_catalog() as catalog:
            self._check(catalog.load_table(TABLE), columns)

    def _check(self, table: Table, columns: TableColumns) -> None:
        """Raise AppendMismatch unless a table has these columns and partitions.

        pyiceberg checks the types when files are added.
        """
        names = {field.name for field in table.schema().fields}
        for name in columns.schema.names:
            if name not in names:
                raise AppendMismatch(self._out, f"it has no column {name} any more")
        folders = tuple(field.name for field in table.spec().fields)
        if folders != columns.partition_by:
            by = ", ".join(folders) or "nothing"
            raise AppendMismatch(self._out, f"it is partitioned by {by} now")

    def create(self, columns: TableColumns, form: str) -> list[str]:
        """Create the catalog and the table; return the paths to sync; see `Table`."""
        from pyiceberg.transforms import DayTransform, IdentityTransform

        os.makedirs(self._out, exist_ok=True)
        with self._open_catalog() as catalog:
            catalog.create_namespace_if_not_exists(NAMESPACE)
            properties = {_FORM: form, _RUN: "0", _ENDS: "[]"}
            with (
                catalog.create_table_transaction(
                    TABLE, columns.schema, location=self._address, properties=properties
                ) as transaction,
                transaction.update_spec() as spec,
            ):
                for name in columns.partition_by:
                    is_date = name == "date"
                    column = "timestamp" if is_date else name
                    transform = DayTransform() if is_date else IdentityTransform()
                    spec.add_field(column, transform, name)
            written = catalog.load_table(TABLE).metadata_location
        return [written.removeprefix("file://")]

    def commit(
        self, files: list[TableFile], run: int, ends: Ends, columns: TableColumns
    ) -> list[str]:
        """Add the files and store the run and its end offsets in one transaction; see `Table`."""
        # pyiceberg warns of each column without statistics; keys and values never have any.
        logging.getLogger("pyiceberg").setLevel(logging.ERROR)
        listed = [[topic, number, end] for (topic, number), end in sorted(ends.items())]
        with self._open_catalog() as catalog:
            table = catalog.load_table(TABLE)
            self._check(table, columns)
            with table.transaction() as transaction:
                if files:
                    paths = [f"{self._address}/{file.path}" for file in files]
                    # File names contain the run: no other commit can have added them.
                    transaction.add_files(paths, check_duplicate_files=False)
                transaction.set_properties({_RUN: str(run), _ENDS: json.dumps(listed)})
            snapshot = table.current_snapshot()
            written = [table.metadata_location]
            if files and snapshot is not None:
                added = (m for m in snapshot.manifests(table.io))
                written += [snapshot.manifest_list, *(m.manifest_path for m in added)]
        return [path.removeprefix("file://") for path in written]
