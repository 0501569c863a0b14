"""Import pyarrow without pandas, which a query in this process does not need.

When pyarrow first makes an array of a list, it imports pandas, if installed, to check whether the
list is an object of pandas. The import takes a third of a second of CPU time, as much as the rest
of a small query. pyarrow tries the import once, and remembers that pandas is missing.

Only for a process that ends with its command: other processes may need pandas
(`Table.to_pandas`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from kctl import exits

_PANDAS = "pandas"


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise ModuleNotFoundError for pandas; return None, no answer, for other modules.

        Python's import system calls it for each module.
        """
        if fullname == _PANDAS:
            raise ModuleNotFoundError(fullname, name=fullname)


def keep_pandas_out() -> None:
    """Import pyarrow so that it finds no pandas, whose import takes long.

    Does nothing if other code in this process may need pandas.
    """
    if not exits.OwnProcess.is_own or _PANDAS in sys.modules:
        return
    refusing = _NoPandas()
    sys.meta_path.insert(0, refusing)
    try:
        import pyarrow

        pyarrow.array([0])
    finally:
        sys.meta_path.remove(refusing)
