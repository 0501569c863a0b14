"""The options of `kafka-console-consumer`, and the properties that they define.

Source: ConsoleConsumerOptions of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final

from engine.host.real import RealEntropy
from kctl.compat.java_numbers import LONG_BITS, is_java_number
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    refused,
    require,
)
from kctl.compat.java_pairs import parse_pairs
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

_BOTH: Final = (
    ToolOption("topic", "A topic to read.", "TOPIC"),
    ToolOption("include", "Topics whose whole names fit.", "REGEX"),
    ToolOption("partition", "Read this partition alone, outside of a group.", "NUMBER"),
    ToolOption("offset", "With --partition: earliest, latest (default) or a number.", "OFFSET"),
    ToolOption("from-beginning", "Where nothing is committed: from the first record."),
    ToolOption("max-messages", "End after so many records.", "COUNT"),
    ToolOption("timeout-ms", "End if no record comes for so long.", "MS"),
    ToolOption("group", "The group to join; a new one without it.", "GROUP"),
    ToolOption("isolation-level", "read_committed or read_uncommitted (default).", "LEVEL"),
    ToolOption("property", "A property of the formatter, as print.key=true.", "KEY=VALUE"),
    ToolOption("formatter", "The class that prints records.", "CLASS"),
    ToolOption("formatter-config", "A file of properties of the formatter.", "FILE"),
    ToolOption("key-deserializer", "The class that reads keys.", "CLASS"),
    ToolOption("value-deserializer", "The class that reads values.", "CLASS"),
    ToolOption("skip-message-on-error", "Go on after a record that cannot be printed."),
    ToolOption("consumer-property", "A property of the consumer.", "KEY=VALUE"),
    ToolOption("consumer.config", "A file of properties of the consumer.", "FILE"),
    ToolOption("enable-systest-events", "Print shutdown_complete at the end."),
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    HELP,
    VERSION,
)
#: Options of the tool by release.
OPTIONS_OF: Final = {
    Release.V3_9: (*_BOTH, ToolOption("whitelist", "As --include, which goes before.", "REGEX")),
    Release.V4_3: (
        *_BOTH,
        ToolOption("formatter-property", "As --property.", "KEY=VALUE"),
        ToolOption("command-property", "As --consumer-property.", "KEY=VALUE"),
        ToolOption("command-config", "As --consumer.config.", "FILE"),
    ),
}
_RENAMED: Final = (
    ("property", "formatter-property"),
    ("consumer-property", "command-property"),
    ("consumer.config", "command-config"),
)
_GROUP_NUMBERS: Final = 100_000


def check_arguments(call: ToolCall, given: GivenOptions) -> None:
    """Raise OptionsRefused for contradictory or missing options of kafka-console-consumer."""
    require(given, "bootstrap-server")
    if call.is_four:
        for old, new in _RENAMED:
            if given.has(old) and given.has(new):
                raise refused(f'Option "[{new}]" can\'t be used with option "[{old}]"')
    names = [given.has("topic"), given.has("include") or given.has("whitelist")]
    if names.count(True) != 1:
        if call.is_four:
            raise refused("Exactly one of the following arguments is required: [topic], [include]")
        old = "--whitelist is DEPRECATED use --include instead; ignored if --include specified."
        note = old if given.has("whitelist") else ""
        raise refused(f"Exactly one of --include/--topic is required. {note}")
    if given.has("partition"):
        if not given.has("topic"):
            raise refused("The topic is required when partition is specified.")
        if given.has("from-beginning") and given.has("offset"):
            raise refused("Options from-beginning and offset cannot be specified together.")
    elif given.has("offset"):
        raise refused("The partition is required when offset is specified.")


def consumer_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the properties of kafka-console-consumer's consumer.

    Pairs of options override a file, which overrides defaults. The group has a random name, and no
    automatic commits, unless one is named. Errors: OptionsRefused.
    """
    path = given.text("command-config") or given.text("consumer.config")
    own = parse_pairs([*given.texts("consumer-property"), *given.texts("command-property")])
    of_file = call.properties(path)
    group_ids = {
        group_id
        for group_id in (given.text("group"), own.get("group.id"), of_file.get("group.id"))
        if group_id is not None
    }
    if len(group_ids) > 1:
        named = ", ".join(f"'{group_id}'" for group_id in sorted(group_ids))
        options = (
            "via '--consumer-property', or via '--consumer.config'"
            if not call.is_four
            else "via '--command-property', or via '--command-config'"
        )
        raise refused(
            "The group ids provided in different places (directly using '--group', "
            f"{options}) do not match. Detected group ids: {named}"
        )
    if group_ids and given.has("partition"):
        raise refused("Options group and partition cannot be specified together.")
    found = {"client.id": "console-consumer", **of_file, **own}
    if group_ids:
        found["group.id"] = group_ids.pop()
    else:
        found["group.id"] = f"console-consumer-{RealEntropy().random_below(_GROUP_NUMBERS)}"
        found.setdefault("enable.auto.commit", "false")
    _set_offset_reset(found, given)
    found["isolation.level"] = given.text("isolation-level") or "read_uncommitted"
    return found


def _set_offset_reset(properties: dict[str, str], given: GivenOptions) -> None:
    """Set auto.offset.reset in `properties`, unless it is given: earliest or latest.

    Errors: OptionsRefused if it contradicts --from-beginning.
    """
    from_beginning = given.has("from-beginning")
    reset = properties.setdefault("auto.offset.reset", "earliest" if from_beginning else "latest")
    if from_beginning and reset != "earliest":
        raise OptionsRefused(
            "Can't simultaneously specify --from-beginning and "
            f"'auto.offset.reset={reset}', please remove one option"
        )


def parse_start_offset(given: GivenOptions) -> int | str:
    """Return where --partition starts: `earliest`, `latest` or an offset.

    Errors: OptionsRefused.
    """
    text = given.text("offset")
    if text is None:
        return "earliest" if given.has("from-beginning") else "latest"
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not is_java_number(text, LONG_BITS) or int(text) < 0:
        raise refused(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', "
            "'latest', or a non-negative long."
        )
    return int(text)


def formatter_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the properties of the formatter, of a file, pairs and deserializer options.

    Errors: ToolFailure.
    """
    found = call.properties(given.text("formatter-config"))
    found |= parse_pairs([*given.texts("property"), *given.texts("formatter-property")])
    for part in ("key", "value"):
        name = given.text(f"{part}-deserializer")
        if name:
            found[f"{part}.deserializer"] = name
    return found


def warn_of_old_names(call: ToolCall, given: GivenOptions) -> None:
    """Print a warning for each option that 4.3.0 has renamed."""
    for old, new in _RENAMED:
        if given.has(old):
            call.out.write(
                f"Option --{old} is deprecated and will be removed in a future version. "
                f"Use --{new} instead.\n"
            )
