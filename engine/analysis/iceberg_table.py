"""An Iceberg table that exports add to, by the library `pyiceberg`.

```
OUT/catalog.db     the catalog `kctl`, SQLite; the table in it is kafka.records
OUT/metadata/      versions of the metadata, manifests
OUT/data/          Parquet files
```

The form of the export, the number of the last run and the end offsets are properties of the table
(`kctl.export`, `kctl.run`, `kctl.partitions`), set by the transaction that adds the files. The
catalog changes by one SQL transaction, which names the new metadata.

Iceberg's metadata has absolute paths: the folder cannot be moved.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from engine.analysis.appending import AppendMismatch
from engine.analysis.table_format import Ends, TableFailed, TableFile, TableState

if TYPE_CHECKING:
    import pyarrow as pa

CATALOG, NAMESPACE, TABLE = "kctl", "kafka", "kafka.records"
_FORM, _RUN, _ENDS = "kctl.export", "kctl.run", "kctl.partitions"


class Iceberg:
    """The Iceberg table in a folder of this machine."""

    mark = "catalog.db"
    data_folder = "data/"

    def __init__(self, out: str) -> None:
        self._out = out

    @contextmanager
    def _catalog(self) -> Iterator[Any]:
        """Yield the catalog in the folder, which exists; it is closed after use."""
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import RESTError, ValidationException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            catalog = SqlCatalog(
                CATALOG, uri=f"sqlite:///{self._out}/{self.mark}", warehouse=f"file://{self._out}"
            )
            try:
                yield catalog
            finally:
                catalog.close()
        except (SQLAlchemyError, RESTError, ValidationException, ValueError, OSError) as error:
            raise TableFailed(self._out, str(error).split("\n", 1)[0]) from error

    def state(self, partitions: Iterable[tuple[str, int]]) -> TableState | None:
        """Return the state of the table; see `Table`."""
        if not os.path.exists(f"{self._out}/{self.mark}"):
            return None
        with self._catalog() as catalog:
            if not catalog.table_exists(TABLE):
                return None
            properties = catalog.load_table(TABLE).properties
        if _FORM not in properties:
            raise AppendMismatch(self._out, "no export made this table")
        ends = {(topic, number): end for topic, number, end in json.loads(properties[_ENDS])}
        return TableState(json.loads(properties[_FORM]), int(properties[_RUN]), ends)

    def create(self, schema: pa.Schema, partition_by: tuple[str, ...], form: str) -> None:
        """Make the table; see `Table`."""
        from pyiceberg.transforms import DayTransform, IdentityTransform

        os.makedirs(self._out, exist_ok=True)
        with self._catalog() as catalog:
            catalog.create_namespace_if_not_exists(NAMESPACE)
            properties = {_FORM: form, _RUN: "0", _ENDS: "[]"}
            with (
                catalog.create_table_transaction(
                    TABLE, schema, location=f"file://{self._out}", properties=properties
                ) as transaction,
                transaction.update_spec() as spec,
            ):
                for name in partition_by:
                    is_date = name == "date"
                    column = "timestamp" if is_date else name
                    transform = DayTransform() if is_date else IdentityTransform()
                    spec.add_field(column, transform, name)

    def commit(self, files: list[TableFile], run: int, ends: Ends) -> list[str]:
        """Commit the files; see `Table`."""
        # It warns of each column without statistics, which are keys and values.
        logging.getLogger("pyiceberg").setLevel(logging.ERROR)
        listed = [[topic, number, end] for (topic, number), end in sorted(ends.items())]
        with self._catalog() as catalog:
            table = catalog.load_table(TABLE)
            with table.transaction() as transaction:
                if files:
                    paths = [f"file://{self._out}/{file.path}" for file in files]
                    # Their names have the run in them: no other commit can have added them.
                    transaction.add_files(paths, check_duplicate_files=False)
                transaction.set_properties({_RUN: str(run), _ENDS: json.dumps(listed)})
            snapshot = table.current_snapshot()
            written = [table.metadata_location]
            if files and snapshot is not None:
                added = (m for m in snapshot.manifests(table.io))
                written += [snapshot.manifest_list, *(m.manifest_path for m in added)]
        return [path.removeprefix("file://") for path in written]
