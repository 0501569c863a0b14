"""Choose the implementation of a table format, if its library is installed."""

from __future__ import annotations

from importlib.util import find_spec

from engine.analysis.table_format import Table
from engine.errors import EngineError


class TableLibraryMissing(EngineError):
    """The Python library of a table format is not installed."""

    exit_code = 2

    def __init__(self, table_format: str, library: str) -> None:
        super().__init__(f"{library} is not installed, and --format {table_format} needs it")
        self.hint = f"pip install 'kctl-kafka[{table_format}]'"


def open_table(table_format: str, out: str) -> Table:
    """Return the table of a format (`delta`, `iceberg`) in a folder; raises TableLibraryMissing."""
    library = {"delta": "deltalake", "iceberg": "pyiceberg"}[table_format]
    if find_spec(library) is None:
        raise TableLibraryMissing(table_format, library)
    if table_format == "delta":
        from engine.analysis.delta_table import Delta

        return Delta(out)
    from engine.analysis.iceberg_table import Iceberg

    return Iceberg(out)
