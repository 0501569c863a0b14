"""pyarrow, without pandas, which a query in this process does not need.

pyarrow imports pandas, where it is installed, for the first list that it makes an array of: to see
whether that is one of pandas' own. The import takes a third of a second of CPU time, as much as the
rest of a small query. pyarrow looks for pandas once, and remembers that it found none.

Only for a process that ends with its command: in others pandas may be wanted (`Table.to_pandas`).
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
        """Refuse pandas, and leave all other modules to other finders."""
        if fullname == _PANDAS:
            raise ModuleNotFoundError(fullname, name=fullname)


def keep_pandas_out() -> None:
    """Import pyarrow without pandas, unless other code in this process may need pandas."""
    if not exits.OwnProcess.is_own or _PANDAS in sys.modules:
        return
    refusing = _NoPandas()
    sys.meta_path.insert(0, refusing)
    try:
        import pyarrow

        pyarrow.array([0])
    finally:
        sys.meta_path.remove(refusing)
