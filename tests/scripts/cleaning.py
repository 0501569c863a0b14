"""A cleaning of segments that ends during its renames, as a broker leaves it that dies then.

```
write  .log.cleaned of each new segment, made durable
rename .cleaned to .swap, the highest base offset first     then the directory is made durable
rename the files that are replaced to .deleted
rename .swap to live names, the lowest base offset first    then the directory is made durable
```

Source: L8; Kafka's LogCleaner and LocalLog.replaceSegments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.local_log import LocalLog
from engine.log.segment import Segment
from engine.naming import FileKind, FileState, SegmentFileName


def clean(files: Files, log: LocalLog, without: set[str], change_count: int) -> str | None:
    """Rewrite closed segments two by two without some values, up to so many renames.

    Returns the name that was given last, without zeros in front, None if there was none.
    """
    closed = list(log.segments)[:-1]
    pairs = [closed[at : at + 2] for at in range(0, len(closed), 2)]
    for pair in pairs:
        _write_cleaned(files, log.directory, pair, without)
    last = None
    for now, then in islice(_renames(files, log.directory, pairs), change_count):
        files.rename(f"{log.directory}/{now}", f"{log.directory}/{then}")
        base_offset, _, kind = then.partition(".")
        last = f"{int(base_offset)}.{kind}"
    return last


def _name(base_offset: int, state: FileState, kind: FileKind = FileKind.LOG) -> str:
    return SegmentFileName(base_offset, kind, state).name


def _write_cleaned(
    files: Files, directory: str, pair: Sequence[Segment], without: set[str]
) -> None:
    name = _name(pair[0].base_offset, FileState.CLEANED)
    cleaned = files.open(f"{directory}/{name}", write=True, create=True)
    for segment in pair:
        for _, batch in scan_batches(segment.file):
            values = {bytes(record.value or b"").decode() for record in batch.records()}
            if not values & without:
                cleaned.append((batch.raw,))
    cleaned.sync()
    files.sync_dir(directory)


def _renames(
    files: Files, directory: str, pairs: Sequence[Sequence[Segment]]
) -> Iterator[tuple[str, str]]:
    bases = [pair[0].base_offset for pair in pairs]
    for base in reversed(bases):
        yield _name(base, FileState.CLEANED), _name(base, FileState.SWAP)
    files.sync_dir(directory)
    for pair in pairs:
        for segment in pair:
            for kind in (FileKind.LOG, FileKind.INDEX, FileKind.TIMEINDEX):
                live = _name(segment.base_offset, FileState.LIVE, kind)
                yield live, _name(segment.base_offset, FileState.DELETED, kind)
    for base in bases:
        yield _name(base, FileState.SWAP), _name(base, FileState.LIVE)
    files.sync_dir(directory)
