"""Plans of `--reset-offsets`: parse and format the CSV files, and print 4.3.0's table.

```
topic,partition,offset          one group, if the first line fits
group,topic,partition,offset    several groups
```

A missing or empty number is 0. The first malformed line ends the command. Texts of more than 24
characters, or with a character below `-`, are written in quotes.

Source: ConsumerGroupCommand.parseResetPlan, exportOffsetsToCsv, CsvUtils of 3.9.1; Jackson 2.16.

Differs: a line without a topic is refused with a message; Kafka throws NullPointerException.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TextIO

from engine.model import TopicPartition
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import OptionsRefused
from kctl.compat.java_split import java_split

#: Offsets by group and partition.
ResetPlan = dict[str, dict[TopicPartition, int]]

PLAN_HEADS: Final = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")

_NUMBER: Final = re.compile(r"\s*[-+]?[0-9]+\s*")
#: Longest number that Jackson parses. Source: StreamReadConstraints.
_NUMBER_CHARS_MAX: Final = 1000
_RUNTIME: Final = "java.lang.RuntimeException"
_JACKSON: Final = "com.fasterxml.jackson"
_RECORDS: Final = "org.apache.kafka.tools.consumer.group.CsvUtils$"
_FIRST_UNQUOTED: Final = "-"
_UNQUOTED_LENGTH_MAX: Final = 24
_WIDTH_MIN: Final = 15


class _RecordKind(NamedTuple):
    """The fields of a kind of line, with the name of Kafka's class for it."""

    class_name: str
    fields: tuple[str, ...]


_OF_ONE_GROUP: Final = _RecordKind("CsvRecordNoGroup", ("topic", "partition", "offset"))
_WITH_GROUP: Final = _RecordKind("CsvRecordWithGroup", ("group", "topic", "partition", "offset"))
_BITS: Final = {"partition": ("int", 31), "offset": ("long", 63)}


class _Line(NamedTuple):
    """A parsed line; `group_id` is "" for lines without a group."""

    group_id: str
    partition: TopicPartition
    offset: int


def parse_plan(text: str, group_ids: Sequence[str], err: TextIO) -> ResetPlan:
    """Parse the CSV of kafka-consumer-groups --from-file into new offsets by group.

    If there is one group, lines may lack its name. As in Kafka's tool, the failure of the first
    attempt is printed to `err`. Errors: ToolFailure with Jackson's message.
    """
    lines = [] if not text.strip("\n") and text else java_split(text, "\n")
    kind = _WITH_GROUP
    try:
        if lines:
            _parse_line(lines[0], _OF_ONE_GROUP)
            kind = _OF_ONE_GROUP if len(group_ids) == 1 else _WITH_GROUP
    except ToolFailure as failure:
        # The tool prints the failure, and tries the other kind of line.
        err.write(f"{failure}\n")
    plan: ResetPlan = {}
    for line in lines:
        group_id, partition, offset = _parse_line(line, kind)
        if kind is _OF_ONE_GROUP:
            group_id = group_ids[0]
        plan.setdefault(group_id, {})[partition] = offset
    return plan


def _parse_line(line: str, kind: _RecordKind) -> _Line:
    """Parse a CSV line with the fields of `kind`: group, topic, partition, offset.

    Errors: ToolFailure with Jackson's message, OptionsRefused for a negative offset.
    """
    if not line.strip():
        raise _refused(
            "databind.exc.MismatchedInputException",
            "No content to map due to end-of-input\n"
            " at [Source: (StringReader); line: UNKNOWN, column: UNKNOWN]",
        )
    import csv

    texts = next(csv.reader([line]))
    values = dict(zip(kind.fields, texts, strict=False))
    # Parse fields in their order in the line, since the first error is reported.
    numbers = {
        name: _parse_number(text, name, kind, texts)
        for name, text in values.items()
        if name in _BITS
    }
    if len(texts) > len(kind.fields):
        count = len(kind.fields)
        extra = texts[count]
        raise _refused(
            "dataformat.csv.CsvReadException",
            f"Too many entries: expected at most {count} "
            f'(value #{count} ({len(extra)} chars) "{extra}")\n{_place(texts, count)}',
        )
    if "topic" not in values:
        raise ToolFailure(f"{_JACKSON}.databind.JsonMappingException", f"No topic in line: {line}")
    offset = numbers.get("offset", 0)
    if offset < 0:
        raise OptionsRefused("Invalid negative offset", shows_usage=True)
    partition = TopicPartition(values["topic"], numbers.get("partition", 0))
    return _Line(values.get("group", ""), partition, offset)


def _parse_number(text: str, name: str, kind: _RecordKind, texts: Sequence[str]) -> int:
    """Parse an int or long field; blank text is 0, as with Jackson.

    Raises ToolFailure for other text, and for more digits than Jackson parses.
    """
    type_name, bits = _BITS[name]
    chain = f'(through reference chain: {_RECORDS}{kind.class_name}["{name}"])'
    if not text.strip():
        return 0
    limit = 1 << bits
    if _NUMBER.fullmatch(text) and (size := len(text.strip())) > _NUMBER_CHARS_MAX:
        raise _refused(
            "databind.JsonMappingException",
            f"Number value length ({size}) exceeds the maximum allowed ({_NUMBER_CHARS_MAX}, from "
            f"`StreamReadConstraints.getMaxNumberLength()`) {chain}",
        )
    if _NUMBER.fullmatch(text) and (type_name == "long" or -limit <= int(text) < limit):
        # A long that is too large loses its high bits.
        return (int(text) + limit) % (2 * limit) - limit
    place = _place(texts, kind.fields.index(name))
    raise _refused(
        "databind.exc.InvalidFormatException",
        f'Cannot deserialize value of type `{type_name}` from String "{text}": not a valid '
        f"`{type_name}` value\n{place} {chain}",
    )


def _place(texts: Sequence[str], index: int) -> str:
    """Return Jackson's text for the position of a column in a line, counted from 1."""
    column = sum(len(text) + 1 for text in texts[:index]) + 1
    return f" at [Source: (StringReader); line: 1, column: {column}]"


def _refused(class_name: str, message: str) -> ToolFailure:
    """Return the failure for a malformed CSV line, with Jackson's exception as its cause."""
    named = f"{_JACKSON}.{class_name}"
    # The tool wraps Jackson's exception.
    return ToolFailure(_RUNTIME, f"{named}: {message}", f"{named}: {message}")


def print_plan_table(plan: ResetPlan, out: TextIO) -> None:
    """Print new offsets as a table, with columns as wide as needed.

    Source: OffsetsUtils.printOffsetsToReset of 4.3.0.
    """
    rows = [
        (group_id, key.topic, str(key.partition), str(offset))
        for group_id, offsets in plan.items()
        for key, offset in offsets.items()
    ]
    group_width = max([_WIDTH_MIN, *map(len, plan)])
    topic_width = max([_WIDTH_MIN, *(len(topic) for _, topic, _, _ in rows)])
    out.write("\n")
    for group_id, topic, partition, offset in (PLAN_HEADS, *rows) if plan else ():
        first = f"{group_id:<{group_width}} {topic:<{topic_width}}"
        out.write(f"{first} {partition:<10} {offset}\n")


def plan_text(plan: Mapping[str, Mapping[TopicPartition, int]], *, names_groups: bool) -> str:
    """Return new offsets as CSV, a line for each partition; --from-file reads it.

    The group is a field only with `names_groups`.
    """
    lines = []
    for group_id, offsets in plan.items():
        for partition, offset in offsets.items():
            fields = [_quoted(partition.topic), str(partition.partition), str(offset)]
            lines.append(",".join([_quoted(group_id), *fields] if names_groups else fields))
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    """Return a CSV field, quoted like Jackson's if it is long or has special characters."""
    needs_quotes = len(text) > _UNQUOTED_LENGTH_MAX or any(c < _FIRST_UNQUOTED for c in text)
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text
