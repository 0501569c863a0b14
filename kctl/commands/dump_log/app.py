"""`kctl dump-log`: the contents of segment files, as lines of Kafka's tool or as rows.

Options that Kafka's tool has keep their meaning, including exit codes: usage errors and
`--help` exit with 1, findings with 0 unless `--check` is given. `-h` shows the same help on
stdout with exit code 0.

A call with known arguments only is parsed here, without importing Typer: the import takes a third
of the time of a small dump. Every other call, and every error, is left to `options.py`; a test
compares the options of both.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, TextIO, cast

from kctl import exits

if TYPE_CHECKING:
    from typer._click.core import Command

    from kctl.commands.dump_log.given import GivenOptions

_CLASS_DEFAULT = "org.apache.kafka.tools.api.StringDecoder"
_OPTIONAL_ARGUMENT = ("--key-decoder-class", "--value-decoder-class")
_DIGITS_MAX = 18
_ONCE = ("--files", "--max-bytes", "--max-message-size", *_OPTIONAL_ARGUMENT)

#: Options without a value.
FLAGS = (
    "print_data_log", "deep_iteration", "skip_record_metadata", "verify_index_only",
    "index_sanity_check", "offsets_decoder", "transaction_log_decoder",
    "cluster_metadata_decoder", "remote_log_metadata_decoder", "share_group_state_decoder",
    "headers_only", "check",
)  # fmt: skip
#: Options with a text value, and their defaults.
TEXTS = {
    "files": None, "max_bytes": "2147483647", "max_message_size": "5242880",
    "key_decoder_class": None, "value_decoder_class": None, "kafka_version": "3.9.1",
    "from_timestamp": None, "to_timestamp": None, "key": None, "key_regex": None,
    "value_regex": None, "header": None, "output": "text",
}  # fmt: skip
#: Options with an integer.
NUMBERS = ("from_offset", "to_offset", "max_records", "producer_id")
#: Repeatable options, which Typer parses.
REPEATED = ("json_path",)


def parse_simple_options(args: list[str]) -> GivenOptions | None:
    """Parse a simple command line of `kctl dump-log`; None if it needs Typer's parser.

    Returns a value for each option. Importing Typer takes longer than the dump of a small file.
    """
    paths: list[str] = []
    given: dict[str, object] = {
        "paths": paths,
        **dict.fromkeys(FLAGS, False),
        **TEXTS,
        **dict.fromkeys(NUMBERS),
        **dict.fromkeys(REPEATED),
    }
    seen: set[str] = set()
    remaining = iter(args)
    for argument in remaining:
        if not argument.startswith("-"):
            paths.append(argument)
            continue
        name = "output" if argument == "-o" else argument[2:].replace("-", "_")
        if argument != "-o" and (not argument.startswith("--") or "_" in argument):
            return None
        if name in FLAGS:
            given[name] = True
            continue
        value = next(remaining, None)
        is_option = name in TEXTS or name in NUMBERS
        if not is_option or name in seen or value is None or value.startswith("-"):
            return None
        # Longer numbers need Typer, which prints the valid range.
        if name in NUMBERS and not (value.isdecimal() and len(value) <= _DIGITS_MAX):
            return None
        seen.add(name)
        given[name] = int(value) if name in NUMBERS else value
    return cast("GivenOptions", given)


def __getattr__(name: str) -> object:
    """Import and return the Typer application on the first access of `app`.

    Raises AttributeError for any other name.
    """
    if name == "app":
        from kctl.commands.dump_log.options import app

        return app
    raise AttributeError(name)


def run(args: list[str]) -> int:
    """Run `kctl dump-log`; arguments are checked by the rules of Kafka's kafka-dump-log.

    Its errors have exit code 1, not Typer's 2. Returns the exit code.
    """
    if "-h" in args:
        return _print_help(sys.stdout, exits.OK)
    if not args:
        return _print_help(sys.stderr, exits.FAILED)
    options = parse_simple_options(args)
    if options is not None:
        from kctl.commands.dump_log.plan import DumpPlan

        return DumpPlan(options).execute()
    prepared = _add_default_decoders(args)
    repeated = next((name for name in _ONCE if _count(prepared, name) > 1), None)
    if repeated is not None:
        sys.stderr.write(f"error: {repeated} is given more than once\n")
        return exits.FAILED
    command = _typer_command()
    requested = [argument for argument in prepared if argument in ("--help", "--version")]
    try:
        rest = [argument for argument in prepared if argument not in requested]
        if requested:
            command.make_context("kctl dump-log", rest)
        else:
            return int(command.main(rest, "kctl dump-log", standalone_mode=False) or exits.OK)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        sys.stderr.write(f"error: {error.format_message()}\n")
        sys.stderr.write("hint: `kctl dump-log -h` lists the options\n")
        return exits.FAILED
    return (
        _print_help(sys.stderr, exits.FAILED) if "--help" in requested else _print_version(prepared)
    )


@cache
def _typer_command() -> Command:
    """Return the Typer command of `kctl dump-log`, for parsing, help and completions."""
    from kctl.typer_alone import import_typer

    import_typer()
    from typer.main import get_command

    from kctl.commands.dump_log.options import app
    from kctl.numbers import set_ranges

    return set_ranges(get_command(app))


def _print_help(stream: TextIO, code: int) -> int:
    """Write the help to a stream, and return `code`."""
    from kctl.commands.dump_log.help_text import help_text

    stream.write(help_text(_typer_command()))
    return code


def _print_version(args: list[str]) -> int:
    """Print the Kafka version that --kafka-version selects, 3.9.1 by default."""
    from engine.dump.options import parse_kafka_version

    version = "3.9.1"
    for argument, following in zip(args, [*args[1:], ""], strict=True):
        if argument == "--kafka-version":
            version = following
        elif argument.startswith("--kafka-version="):
            version = argument.partition("=")[2]
    sys.stdout.write(f"{parse_kafka_version(version)}\n")
    return exits.OK


def _count(args: list[str], name: str) -> int:
    """Return the number of times that an option is given, as `--name value` or `--name=value`."""
    return sum(argument == name or argument.startswith(f"{name}=") for argument in args)


def _add_default_decoders(args: list[str]) -> list[str]:
    """Return the arguments with a default decoder behind decoder options without a value.

    Kafka's tool allows these options without a value; Typer does not.
    """
    out: list[str] = []
    for argument, following in zip(args, [*args[1:], "-"], strict=True):
        out.append(argument)
        if argument in _OPTIONAL_ARGUMENT and following.startswith("-"):
            out.append(_CLASS_DEFAULT)
    return out
