"""`kafka-dump-log`: prints the contents of log files, by `kctl dump-log`.

Source: DumpLogSegments of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from kctl.commands.dump_log.app import FLAGS, NUMBERS, REPEATED, TEXTS
from kctl.commands.dump_log.plan import DumpPlan
from kctl.compat.java_options import HELP, VERSION, GivenOptions, ToolOption, require
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

if TYPE_CHECKING:
    from kctl.commands.dump_log.given import GivenOptions as GivenToDumpLog

SUMMARY = "Shows what is in segment files, indexes and snapshots."
_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"
_BOTH: Final = (
    ToolOption("files", "The files to dump. Required.", "FILE,..."),
    ToolOption("print-data-log", "Print keys and values."),
    ToolOption("deep-iteration", "Print records below their batch."),
    ToolOption("skip-record-metadata", "Of records, print keys and values alone."),
    ToolOption("max-bytes", "Read so many bytes of each log.", "BYTES"),
    ToolOption("max-message-size", "Read so many bytes to check an index entry.", "BYTES"),
    ToolOption("verify-index-only", "Check indexes, print no entries."),
    ToolOption("index-sanity-check", "Make a broker's check of an index alone."),
    ToolOption("key-decoder-class", "The class that decodes keys.", "CLASS", True),
    ToolOption("value-decoder-class", "The class that decodes values.", "CLASS", True),
    ToolOption("offsets-decoder", "The records are those of __consumer_offsets."),
    ToolOption("transaction-log-decoder", "The records are those of __transaction_state."),
    ToolOption("cluster-metadata-decoder", "The records are those of __cluster_metadata."),
    ToolOption("remote-log-metadata-decoder", "The records are those of __remote_log_metadata."),
    HELP,
    VERSION,
)
_FOUR: Final = (
    ToolOption("share-group-state-decoder", "The records are those of __share_group_state."),
)
_DECODERS: Final = ("key-decoder-class", "value-decoder-class")


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-dump-log has in a release."""
    return _BOTH + _FOUR if release.is_four else _BOTH


def run(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-dump-log by `kctl dump-log`; returns the exit code."""
    require(given, "files")
    return DumpPlan(_dump_log_options(call, given)).execute()


def _dump_log_options(call: ToolCall, given: GivenOptions) -> GivenToDumpLog:
    """Return a value for each option of `kctl dump-log`, from the tool's options."""
    plan: dict[str, object] = {
        "paths": [],
        **{name: given.has(name.replace("_", "-")) for name in FLAGS},
        **TEXTS,
        **dict.fromkeys(NUMBERS),
        **dict.fromkeys(REPEATED),
        "kafka_version": call.release.value,
    }
    for name in ("files", "max-bytes", "max-message-size"):
        if given.has(name):
            plan[name.replace("-", "_")] = given.needed(name)
    for name in _DECODERS:
        if given.has(name):
            plan[name.replace("-", "_")] = given.text(name) or _DECODER
    return cast("GivenToDumpLog", plan)
