"""Tables that exports added to, read back by the libraries of their formats."""

from __future__ import annotations

import os
from typing import Any


def rows_of(table_format: str, out: str) -> list[dict[str, Any]]:
    """Return the rows of a table, none if it is not there yet."""
    rows: list[dict[str, Any]]
    if table_format == "delta":
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(out):
            return []
        rows = DeltaTable(out).to_pyarrow_table().to_pylist()
        return rows
    from pyiceberg.catalog.sql import SqlCatalog

    if not os.path.exists(f"{out}/catalog.db"):
        return []
    catalog = SqlCatalog("kctl", uri=f"sqlite:///{out}/catalog.db")
    try:
        if not catalog.table_exists("kafka.records"):
            return []
        rows = catalog.load_table("kafka.records").scan().to_arrow().to_pylist()
        return rows
    finally:
        catalog.close()


def files_of(table_format: str, out: str) -> set[str]:
    """Return the names of the data files that a table has."""
    if table_format == "delta":
        from deltalake import DeltaTable

        return {os.path.basename(path) for path in DeltaTable(out).file_uris()}
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("kctl", uri=f"sqlite:///{out}/catalog.db")
    try:
        listed = catalog.load_table("kafka.records").inspect.files()["file_path"]
        return {os.path.basename(path) for path in listed.to_pylist()}
    finally:
        catalog.close()
