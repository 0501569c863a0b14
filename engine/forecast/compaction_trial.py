"""Measures the effect of a cleaning by running it and discarding its output.

```
folder/<topic>-<n>/    a link to each file of the source, which is only read
cleaning               the broker's own, on these; new segments have a length and no content
```

So the rules are exactly the cleaner's, and the directory of a running broker can be tried. All keys
have to fit into the map, since there is no output to read in a second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.forecast.compaction_run import run_compaction
from engine.forecast.dirtiness import CompactedLog
from engine.forecast.opened_directory import DirectoryHost
from engine.host.ports import Clock, Entropy
from engine.host.unwritten_files import UnwrittenFiles
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.directory import clean_shutdown, meta_properties
from engine.log.directory.clean_shutdown import CleanShutdown, encode_clean_shutdown
from engine.log.directory.log_dir import LogDir, PartitionFolder
from engine.log.directory.log_directory import DirectoryLock
from engine.log.directory.meta_properties import MetaProperties, encode_meta_properties
from engine.log.directory.offset_checkpoint import FILE_NAMES, encode_offsets
from engine.log.log_config import LogConfig
from engine.naming import FileKind, FileState

#: Suffix of the segment files that a cleaning writes.
CLEANED_END = f"{FileKind.LOG.value}{FileState.CLEANED.value}"
_IDENTITY = MetaProperties(0, "trial", 0)


def trial_files() -> UnwrittenFiles:
    """Return a file system for a trial: links are read, cleaned segments are not stored."""
    return UnwrittenFiles(CLEANED_END)


def try_compaction(
    files: UnwrittenFiles,
    machine: tuple[Clock, Entropy, DirectoryLock],
    log_dir: LogDir,
    folder: str,
    config_of: Callable[[str], LogConfig],
    is_wanted: Callable[[str], bool],
    settings: CleaningSettings,
) -> Iterator[CompactedLog]:
    """Yield the result of a trial cleaning for each wanted compacted log.

    The logs are linked into `folder`, which must be empty and used by no other process, and
    cleaned there. `cleanable_bytes` above 0 remain for a log whose keys did not fit into the map.
    Raises the errors of `run_compaction`.
    """
    folders = [
        partition
        for partition in log_dir.partitions
        if partition.is_kept
        and partition.files.segments
        and partition.topic_partition is not None
        and is_wanted(partition.topic_partition.topic)
    ]
    for partition in folders:
        _link_partition(files, partition, f"{folder}/{partition.name}")
    _write_state(files, log_dir, folders, folder, machine[0])
    host = DirectoryHost(files, *machine)
    yield from run_compaction(host, folder, config_of, is_wanted, settings, passes_max=1)


def _link_partition(files: UnwrittenFiles, partition: PartitionFolder, target: str) -> None:
    """Link a partition's files that a broker knows into a folder of the trial."""
    files.make_dir(target)
    unknown = set(partition.files.unknown)
    for name in files.list_dir(partition.files.path):
        if name not in unknown:
            files.link(partition.files.file_path(name), f"{target}/{name}")


def _write_state(
    files: UnwrittenFiles,
    log_dir: LogDir,
    folders: list[PartitionFolder],
    target: str,
    clock: Clock,
) -> None:
    """Write the checkpoints and the clean shutdown marker next to the linked logs."""
    keys = {partition.topic_partition for partition in folders}
    for name in FILE_NAMES:
        offsets = log_dir.state.checkpoints.get(name)
        if offsets is not None:
            ours = {key: offset for key, offset in offsets.items() if key in keys}
            files.replace_file(f"{target}/{name}", encode_offsets(ours))
    if log_dir.state.clean_shutdown is not None:
        marker = encode_clean_shutdown(CleanShutdown())
        files.replace_file(f"{target}/{clean_shutdown.FILE_NAME}", marker)
    identity = encode_meta_properties(_IDENTITY, clock.wall_ms())
    files.replace_file(f"{target}/{meta_properties.FILE_NAME}", identity)
