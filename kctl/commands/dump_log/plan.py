"""Turn the options of `kctl dump-log` into a dump by the engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

from engine.dump.decoders import Decoder, InternalTopicDecoder, PairDecoder, TextDecoder
from engine.dump.filters import Filters
from engine.dump.options import DumpOptions, parse_kafka_version
from engine.errors import EngineError, StorageError
from engine.host.ports import Buffer, FileMissing, Files
from engine.host.real import RealFiles
from kctl import exits
from kctl.compat.java_split import java_split
from kctl.console import report_error
from kctl.numbers import read_whole

if TYPE_CHECKING:
    from kctl.commands.dump_log.given import GivenOptions

    _InternalDecoder = Literal[
        "offsets_decoder",
        "transaction_log_decoder",
        "cluster_metadata_decoder",
        "remote_log_metadata_decoder",
        "share_group_state_decoder",
    ]

_NUMBERS = ("offset", "timestamp_ms", "sequence", "key_size_bytes", "value_size_bytes")
_ROW_OUTPUTS = ("json", "ndjson", "csv")
_DEFAULT_CLASS = "org.apache.kafka.tools.api.StringDecoder"
#: Decoder options in Kafka's order of precedence.
_INTERNAL: Final[tuple[tuple[_InternalDecoder, str], ...]] = (
    ("offsets_decoder", "offsets"),
    ("transaction_log_decoder", "transaction_log"),
    ("cluster_metadata_decoder", "cluster_metadata"),
    ("remote_log_metadata_decoder", "remote_log_metadata"),
    ("share_group_state_decoder", "share_group_state"),
)


class WrongUsage(EngineError):
    """Options contradict each other, or have invalid values."""

    hint = "`kctl dump-log -h` lists the options"


class DumpPlan:
    """One run of the command, from the parsed options to the exit code."""

    def __init__(self, given: GivenOptions) -> None:
        self._given = given
        self._version = parse_kafka_version(given["kafka_version"])
        self._files: Files = RealFiles()
        self._failures = 0

    def execute(self) -> int:
        """Print the requested files, as lines of kafka-dump-log or as rows; returns the exit code.

        Errors: WrongUsage, those of files.
        """
        given = self._given
        if given["share_group_state_decoder"] and self._version != "4.3.0":
            raise WrongUsage("--share-group-state-decoder needs --kafka-version 4.3")
        if given["output"] not in ("text", *_ROW_OUTPUTS):
            raise WrongUsage(f"-o {given['output']}: expected text, json, ndjson or csv")
        paths = self._paths_to_dump()
        options = self._dump_options()
        with self._start_progress(paths):
            if given["output"] != "text":
                return self._print_rows(paths, options)
            return self._print_text(paths, options)

    def _start_progress(self, paths: list[str]) -> AbstractContextManager[object]:
        """Return a progress line if only stderr is a terminal, else a context without effect.

        `self._files` is replaced by files that count the bytes read.
        """
        if sys.stderr is None or not sys.stderr.isatty() or sys.stdout.isatty():
            return nullcontext()
        from kctl.commands.logs.progress import Progress
        from kctl.counted_files import CountedFiles

        total = sum(self._files.size_bytes(path) for path in paths if self._files.exists(path))
        progress = Progress(total, "dumping")
        self._files = CountedFiles(progress.advance)
        return progress

    def _print_text(self, paths: list[str], options: DumpOptions) -> int:
        """Print files as kafka-dump-log prints them; notes go to stderr. Returns the exit code."""
        from engine.dump.output import Output
        from engine.dump.session import DumpSession
        from kctl.render.visible import VisibleStream

        sys.stdout.flush()
        terminal = VisibleStream(_write_all) if sys.stdout.isatty() else None
        write = _write_all if terminal is None else terminal.write
        session = DumpSession(self._files, options, Output(write))
        try:
            session.run(paths)
        except StorageError as error:
            # A missing file is reported as missing before its suffix is checked.
            missing = [path for path in paths if path and not self._files.exists(path)]
            if missing:
                raise FileMissing(missing[0]) from error
            raise
        finally:
            if terminal is not None:
                terminal.close()
            summary = session.summary()
            sys.stderr.writelines(f"{line}\n" for line in summary.remarks)
        return self._exit_code(summary.problem_count, options)

    def _print_rows(self, paths: list[str], options: DumpOptions) -> int:
        """Print files as rows; the columns depend on the kind of file. Returns the exit code."""
        from engine.dump.rows import RowDump
        from engine.native.bulk_reading import BulkReading
        from kctl.render import Column, RowWriter

        dump = RowDump(self._files, options, headers_only=self._given["headers_only"])
        writer: RowWriter | None = None
        columns: tuple[str, ...] = ()
        bulk = BulkReading()
        try:
            for rows in dump.dump_rows(paths):
                if writer is None:
                    columns = rows.columns
                    writer = RowWriter([Column(c, c) for c in columns], self._given["output"])
                elif rows.columns is not columns:
                    if self._given["output"] == "csv":
                        raise WrongUsage("CSV has one heading: dump files of different kinds apart")
                    columns = rows.columns
                    writer.use_columns([Column(c, c) for c in columns])
                if rows.varying:
                    writer.write_run(rows.shared, _typed_columns(rows.varying))
                    bulk.count(len(next(iter(rows.varying.values()))))
                else:
                    writer.write(rows.shared)
        finally:
            if writer is None:
                columns = dump.default_columns
                writer = RowWriter([Column(c, c) for c in columns], self._given["output"])
            writer.close()
        return self._exit_code(dump.problem_count, options)

    def _exit_code(self, problem_count: int, options: DumpOptions) -> int:
        """Return FAILED after failures or undecodable records, else OK.

        With --check, PROBLEMS_FOUND is returned if the dump found problems in the files.
        """
        if self._failures or options.decoder.undecodable_count:
            return exits.FAILED
        if problem_count and self._given["check"]:
            return exits.PROBLEMS_FOUND
        return exits.OK

    def _paths_to_dump(self) -> list[str]:
        """Return the paths of the files to dump; raises WrongUsage if none is given."""
        files, paths = self._given["files"], self._given["paths"]
        if files is not None:
            # As in Kafka's tool: drop trailing empty names, and ignore arguments without an option.
            return java_split(files, ",")
        if not paths:
            raise WrongUsage('Missing required argument "[files]"')
        return [segment for path in paths for segment in self._selected_segments(path)]

    def _selected_segments(self, path: str) -> list[str]:
        """Return a file's path, or the segments of a directory that may have the requested offsets.

        Errors: FileMissing, those of `_no_segments_error` for a directory without segments.
        """
        if not self._files.is_dir(path):
            if not self._files.exists(path):
                raise FileMissing(path)
            return [path]
        from engine.dump.seek import list_segments

        segments = list_segments(self._files, path.rstrip("/"), self._parse_filters())
        if not segments and not list_segments(self._files, path.rstrip("/"), Filters()):
            raise self._no_segments_error(path)
        return segments

    def _no_segments_error(self, path: str) -> EngineError:
        """Return the error for a directory without a segment file.

        It names the partitions if the directory is a log directory.
        """
        from engine.log.directory.log_dir import HoldsPartitions, NoLogDirectory, find_log_dir

        try:
            partitions = [
                partition.name for partition in find_log_dir(self._files, path).partitions
            ]
        except NoLogDirectory as error:
            return error
        if partitions:
            return HoldsPartitions(path, partitions)
        return WrongUsage(f"{path}: no .log file in this directory")

    def _dump_options(self) -> DumpOptions:
        """Return the options of the dump.

        An option that selects records implies --deep-iteration.
        """
        given = self._given
        filters = self._parse_filters()
        max_bytes, log_fault = _parse_int32("--max-bytes", given["max_bytes"])
        max_message, index_fault = _parse_int32("--max-message-size", given["max_message_size"])
        prints = given["print_data_log"] or any(
            (given["key_decoder_class"], given["value_decoder_class"])
        )
        prints = prints or any(given[name] for name, _ in _INTERNAL)
        prints = prints and not given["headers_only"]
        return DumpOptions(
            kafka_version=self._version,
            deep=(prints or given["deep_iteration"] or filters.picks_records)
            and not given["headers_only"],
            print_data=prints,
            skip_record_metadata=given["skip_record_metadata"],
            max_bytes=max_bytes,
            max_message_size_bytes=max_message,
            log_fault=log_fault,
            index_fault=index_fault,
            verify_index_only=given["verify_index_only"],
            index_sanity_check=given["index_sanity_check"],
            decoder=self._create_decoder(),
            filters=filters,
        )

    def _create_decoder(self) -> Decoder:
        """Return the decoder of keys and values that the options select."""
        given = self._given
        for name, kind in _INTERNAL:
            if given[name]:
                return InternalTopicDecoder(kind, self._version)
        key, value = given["key_decoder_class"], given["value_decoder_class"]
        if key is None and value is None:
            return TextDecoder()
        return PairDecoder(key or _DEFAULT_CLASS, value or _DEFAULT_CLASS, self._version)

    def _parse_filters(self) -> Filters:
        """Return the filters on offset, time, producer and content of records.

        Errors: those of malformed times and patterns.
        """
        from kctl.content_filters import content_filters
        from kctl.iso_times import parse_time_ms

        given = self._given
        start, end = given["from_timestamp"], given["to_timestamp"]
        return content_filters(
            given["key"],
            given["key_regex"],
            given["value_regex"],
            given["header"],
            given["json_path"],
        )._replace(
            from_offset=given["from_offset"],
            to_offset=given["to_offset"],
            from_timestamp_ms=None if start is None else parse_time_ms(start),
            to_timestamp_ms=None if end is None else parse_time_ms(end),
            producer_id=given["producer_id"],
            max_records=given["max_records"],
            on_unjudged=self._on_unjudged if given["json_path"] else None,
        )

    def _on_unjudged(self, error: EngineError) -> None:
        """Print and count the error of a record that a filter cannot test and that is left out."""
        report_error(error)
        self._failures += 1


def _typed_columns(varying: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[object]]:
    """Wrap each column as numbers or texts, so that the writer formats it as a whole.

    Formatting value by value would be slower; headers are lists, and stay as they are.
    """
    from kctl.render.bulk import Numbers, Texts

    return {
        name: values if name == "headers" else (Numbers if name in _NUMBERS else Texts)(values)
        for name, values in varying.items()
    }


def _parse_int32(option: str, text: str) -> tuple[int, WrongUsage | None]:
    """Parse an int32; return the number and None, or 0 and the error.

    Kafka's tool reports the error only when it reads a file that needs the number.
    """
    number = read_whole(text)
    if number is not None and -(1 << 31) <= number < 1 << 31:
        return number, None
    return 0, WrongUsage(f"{option} {text}: expected a whole number of 32 bits")


def _write_all(block: Buffer) -> None:
    """Write bytes to stdout without its text layer, and flush them."""
    sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
