"""Send kctl to the executors of Spark's tasks, so that it need not be installed there.

```
engine.zip#engine      unpacked by Spark into the folder that tasks import from
fastcrc.zip#fastcrc    likewise: packages with compiled code cannot be imported from an archive
duckdb-2.0.dist-info   metadata of a distribution, which some packages read
_duckdb.….so           a module of a single file is sent as it is
```

Sent packages take precedence over installed ones, so that driver and executors have one version.
Compiled code is that of this machine: executors need the same system, processor and minor version
of Python. PySpark, pyarrow, pandas and numpy are not sent: Spark needs them installed to pass Arrow
data.
"""

from __future__ import annotations

import atexit
import os
import shutil
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from engine.analysis.spark_tasks import is_remote
from engine.host.temporary import create_temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Packages that every task imports.
TASK_PACKAGES = ("engine", "fastcrc", "cramjam", "xxhash")
#: Packages that tasks import additionally for `--where` and for decoding by schemas.
CONDITION_PACKAGES = ("duckdb", "_duckdb")
SCHEMA_PACKAGES = ("fastavro", "google.protobuf", "google._upb")

# Names of the packages that each session was sent.
_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def ship(session: SparkSession, packages: tuple[str, ...]) -> None:
    """Send installed Python packages to the executors of a Spark session, each once.

    Tasks on other machines import them.
    """
    sent = _sent.setdefault(session, set())
    wanted = [name for name in packages if name not in sent]
    sent.update(wanted)
    # Executors that start later fetch the archives too, so they are kept until this process ends.
    folder = create_temporary_folder("kctl-shipped-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archives, files = archive_packages(wanted, folder)
    if is_remote(session):
        if archives:
            session.addArtifacts(*archives, archive=True)
        if files:
            session.addArtifacts(*files, file=True)
        return
    for path in archives:
        session.sparkContext.addArchive(path)
    for path in files:
        session.sparkContext.addFile(path)


def runs_elsewhere(session: SparkSession) -> bool:
    """Return True if tasks of a session may run on other machines."""
    return is_remote(session) or not session.sparkContext.master.startswith("local")


def archive_packages(names: list[str], folder: str) -> tuple[list[str], list[str]]:
    """Write packages as zip archives into a folder, for Spark to unpack on executors.

    Returns the archives as `path#name`, and paths of single-file modules. Packages that are not
    installed are left out.
    """
    archives: dict[str, list[tuple[str, str]]] = {}
    files: list[str] = []
    for name in names:
        spec = _spec(name)
        if spec is None:
            continue
        if spec.submodule_search_locations:
            # Packages of one namespace share an archive: Spark unpacks each name once.
            top, _, rest = name.partition(".")
            root = next(iter(spec.submodule_search_locations))
            archives.setdefault(top, []).extend(_members(root, rest.replace(".", "/")))
        elif spec.origin is not None:
            files.append(spec.origin)
    written = [path for name in names if (path := _archive_metadata(name, folder))]
    for top, members in archives.items():
        path = f"{folder}/{top}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for source, member in members:
                archive.write(source, member)
        written.append(f"{path}#{top}")
    return written, files


def _archive_metadata(name: str, folder: str) -> str | None:
    """Write the metadata of an installed package as an archive; return it as `path#name`.

    Some packages read their own version from it. None for a package that no distribution has
    installed.
    """
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    top = f"{name}-{found.version}.dist-info"
    with zipfile.ZipFile(f"{folder}/{top}.zip", "w") as archive:
        archive.writestr("METADATA", found.read_text("METADATA") or "")
    return f"{folder}/{top}.zip#{top}"


def _spec(name: str) -> ModuleSpec | None:
    """Return a module's spec, None if the module or its parent package is not installed."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:
        return None


def _members(root: str, within: str) -> Iterator[tuple[str, str]]:
    """Yield (file, name in the archive) for the files of a package, without bytecode.

    `root` is the package's folder, `within` its path in the archive.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield path, os.path.join(within, os.path.relpath(path, root))
