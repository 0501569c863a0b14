"""Files of an object store, read by ranges: `s3://bucket/brokers/1/orders-0/….log`.

| address | client, of `pyarrow.fs` |
|---|---|
| `s3://bucket/key` | S3FileSystem; the endpoint by AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL |
| `gs://bucket/key` | GcsFileSystem; an emulator by STORAGE_EMULATOR_HOST |
| `abfs://container@account.dfs.core.windows.net/key` | AzureFileSystem; AZURE_STORAGE_KEY |
| `hdfs://host:port/path`, `hdfs:///path` | HadoopFileSystem; needs Hadoop with libhdfs |

A directory is a common beginning of names. Sizes come with the listing of a directory. A file is
read in blocks of RANGE_BYTES, the last of which is kept, so that small reads one after another
cost one request. Credentials and region are those of the store's own client: its variables,
profiles, the machine's role. Nothing is written.

Source: facts/spark.md §4.
"""

from __future__ import annotations

import errno
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import EngineError, StorageError
from engine.host.ports import FileMissing, FileRefused
from engine.host.read_only_files import ReadOnlyFile, ReadOnlyFiles, refuse_writing
from engine.limits import OBJECT_RANGE_BYTES

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

#: A normalised path may have only one slash after the scheme (`s3:/bucket`).
_ADDRESS = re.compile(r"(?:(s3|gs|abfss?):/+(?=[^/])|(hdfs):(?://(?=[^/])|/+(?=/)))")
_BUCKET_SCHEMES = ("s3", "gs")
_STORE_PACKAGE = "pyarrow"


class ObjectStoreMissing(EngineError):
    """The package that reads object stores is not installed."""

    hint = "pip install 'kctl-kafka[sql]'"

    def __init__(self) -> None:
        super().__init__(f"{_STORE_PACKAGE} is not installed, and object stores need it")


def is_object_path(path: str) -> bool:
    """Return True if a path names an object store; `s3:/` with one slash is accepted."""
    return _ADDRESS.match(path) is not None


class ObjectFiles(ReadOnlyFiles):
    """The files of object stores, by their addresses."""

    def __init__(self) -> None:
        self._listed: dict[str, dict[str, FileInfo]] = {}

    def open(self, path: str, *, write: bool = False, create: bool = False) -> ReadOnlyFile:
        """Open a file read-only; raises FileMissing, FileRefused."""
        if write or create:
            refuse_writing(path)
        found = self._find_info(path)
        if found is None or not found.is_file:
            raise FileMissing(path)
        try:
            source = _locate(path)[0].open_input_file(found.path)
        except FileNotFoundError as error:
            # The object was removed after its folder was listed.
            raise FileMissing(path) from error
        except OSError as error:
            raise _failure(error, path, "open") from error
        return _ObjectFile(path, found.size, source)

    def exists(self, path: str) -> bool:
        """Return True if a file or directory is at this address."""
        return self._find_info(path) is not None

    def is_dir(self, path: str) -> bool:
        """Return True if the address is that of a directory."""
        found = self._find_info(path)
        return found is not None and not found.is_file

    def size_bytes(self, path: str) -> int:
        """Return the size of an object; raises FileMissing."""
        found = self._find_info(path)
        if found is None or not found.is_file:
            raise FileMissing(path)
        return int(found.size)

    def read_bytes(self, path: str) -> bytes:
        """Return the content of an object, which should be small; raises FileMissing."""
        file = self.open(path)
        try:
            return file.read_at(0, file.size_bytes())
        finally:
            file.close()

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; raises FileMissing."""
        return sorted(self._list_folder(path.rstrip("/")))

    def _list_folder(self, path: str) -> dict[str, FileInfo]:
        """Return a directory's entries by name, listed once. Raises FileMissing."""
        if path not in self._listed:
            from pyarrow.fs import FileSelector

            store, key = _locate(path)
            try:
                found = store.get_file_info(FileSelector(key))
            except FileNotFoundError as error:
                raise FileMissing(path) from error
            except (OSError, ValueError) as error:
                raise _failure(error, path, "list") from error
            self._listed[path] = {info.base_name: info for info in found}
        return self._listed[path]

    def _find_info(self, path: str) -> FileInfo | None:
        """Return the file or folder at a path, from its folder's listing if that was read.

        None if it does not exist, or if the path cannot be a key of the store.
        """
        from pyarrow.fs import FileType

        folder, _, name = path.rstrip("/").rpartition("/")
        if folder in self._listed:
            return self._listed[folder].get(name)
        store, key = _locate(path)
        try:
            found = store.get_file_info(key)
        except ValueError:
            return None
        except OSError as error:
            raise _failure(error, path, "stat") from error
        return None if found.type == FileType.NotFound else found


class _ObjectFile(ReadOnlyFile):
    def __init__(self, path: str, size_bytes: int, source: NativeFile) -> None:
        """`source` reads the object's bytes, of which a block is kept."""
        super().__init__(path, size_bytes)
        self._source = source
        #: The block that was read last, and its position.
        self._block = b""
        self._block_start = 0

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes, from the block read last if it has them all."""
        length = min(length, self._size_bytes - position)
        if length <= 0:
            return b""
        start = position - self._block_start
        if not (start >= 0 and start + length <= len(self._block)):
            wanted = min(max(length, OBJECT_RANGE_BYTES), self._size_bytes - position)
            try:
                self._block = self._source.read_at(wanted, position)
            except OSError as error:
                raise _failure(error, self.path, "read") from error
            self._block_start, start = position, 0
        return self._block[start : start + length]

    def close(self) -> None:
        """Close the stream of the object, and drop the block read last."""
        self._block = b""
        self._source.close()


def _locate(path: str) -> tuple[FileSystem, str]:
    """Return the store of an address, and the key or path in it. Raises FileRefused."""
    address = _ADDRESS.match(path)
    assert address is not None
    scheme, rest = address[1] or address[2], path[address.end() :].rstrip("/")
    try:
        if scheme in _BUCKET_SCHEMES:
            return _bucket_store(scheme), rest
        authority, _, key = rest.partition("/")
        store, root = _account_store(scheme, authority)
    except (OSError, ValueError) as error:
        # pyarrow raises ValueError for an invalid address.
        raise FileRefused(path, "open", str(error).split("\n", 1)[0], errno.EINVAL) from error
    return store, f"{root}/{key}" if root else key


@lru_cache
def _bucket_store(scheme: str) -> FileSystem:
    """Return the client of S3 or GCS, set by the environment; raises ObjectStoreMissing."""
    try:
        from pyarrow.fs import GcsFileSystem, S3FileSystem
    except ImportError as error:
        raise ObjectStoreMissing from error
    if scheme == "gs":
        emulator = os.environ.get("STORAGE_EMULATOR_HOST")
        if emulator is None:
            return GcsFileSystem()
        protocol, _, host = emulator.rpartition("://")
        return GcsFileSystem(anonymous=True, endpoint_override=host, scheme=protocol or "http")
    # The only setting that Arrow's client does not read from the environment.
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return S3FileSystem(endpoint_override=endpoint)


@lru_cache
def _account_store(scheme: str, authority: str) -> tuple[FileSystem, str]:
    """Return the store of an HDFS or Azure address, and its root without a final slash.

    `authority` is the part between `://` and the next slash.
    """
    try:
        from pyarrow.fs import AzureFileSystem, FileSystem
    except ImportError as error:
        raise ObjectStoreMissing from error
    if scheme == "hdfs":
        store, path = FileSystem.from_uri(f"{scheme}://{authority}/")
        return store, path.rstrip("/")
    before, _, host = authority.rpartition("@")
    account, _, domain = host.partition(".")
    container = before
    places: dict[str, str] = {}
    if host.partition(":")[0] in ("localhost", "127.0.0.1"):
        # An emulator: `abfs://account@127.0.0.1:10000/container`.
        account, container = before, ""
        for kind in ("blob", "dfs"):
            places |= {f"{kind}_storage_authority": host, f"{kind}_storage_scheme": "http"}
    elif suffix := domain.partition(".")[2]:
        places = {f"{kind}_storage_authority": f".{kind}.{suffix}" for kind in ("blob", "dfs")}
    key = os.environ.get("AZURE_STORAGE_KEY")
    return AzureFileSystem(account, account_key=key, **places), container


def _failure(error: OSError | ValueError, path: str, operation: str) -> StorageError:
    """Return the error of a failed operation; a ValueError means an invalid key."""
    reason = str(error).split("\n", 1)[0]
    code = error.errno or errno.EIO if isinstance(error, OSError) else errno.EINVAL
    return FileRefused(path, operation, reason, code)
