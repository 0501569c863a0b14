"""Every number of every command: what is none, or beyond its range, is refused with the range."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from typer import BadParameter
from typer.main import get_command

from kctl import exits
from kctl.__main__ import main
from kctl.app import NOUNS
from kctl.arguments import UnreadableArgument
from kctl.commands.replay.replaying import parse_speed
from kctl.commands.topics.changes import parse_assignment
from kctl.iso_times import UnreadableTime, parse_time_ms
from kctl.numbers import INT64_MAX, parse_whole_number, read_whole, set_ranges
from kctl.offset_points import parse_point
from kctl.selection import parse_numbers
from kctl.sizes import parse_bytes

HOSTILE = (
    "nan",
    "inf",
    "-inf",
    "-1",
    f"{1 << 63}",
    "9" * 400,
    "9" * 5_000,
    "",
    " ",
    "1e999",
    "0x1",
)
#: What has whole numbers of its own beside words.
WORDS_BEFORE = {"topics set-rf": ["t"], "brokers replace": []}


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from _commands(f"{path} {name}", child)


def _numbers() -> Iterator[tuple[str, Any]]:
    for noun_name, noun in NOUNS.items():
        app = import_module(f"kctl.commands.{noun.module}.app").app
        for path, command in _commands(noun_name, set_ranges(get_command(app))):
            for parameter in command.params:
                if parameter.type.name.startswith(("int", "float")):
                    yield path, parameter


NUMBERS = [
    pytest.param(path, parameter, nth, id=f"{path} {parameter.opts[0]}")
    for nth, (path, parameter) in enumerate(_numbers())
]


@pytest.mark.parametrize(("path", "parameter", "nth"), NUMBERS)
def test_a_number_that_is_none_is_refused_with_its_range(
    path: str, parameter: Any, nth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    is_argument = parameter.param_type_name == "argument"
    # Kafka's own tool has this code for wrong usage.
    code = exits.FAILED if path == "dump-log" else exits.USAGE
    # Counts that go back are negative.
    is_back = (getattr(parameter.type, "min", None) or 0) < 0
    texts = [text for text in HOSTILE if text != "-1" or not is_back]
    for text in texts:
        with pytest.raises(BadParameter) as refused:
            parameter.type.convert(text, parameter, None)
        assert "xpected one from" in refused.value.format_message()
    # A command line is read for each text in the same way, which takes long: each number has a part
    # of the texts there, and each text a part of the numbers.
    for text in texts[nth % 4 :: 4]:
        if is_argument:
            words = [*WORDS_BEFORE.get(path, []), "--", text]
        else:
            words = [f"{parameter.opts[0]}={text}" if len(parameter.opts[0]) > 2 else ""]
            words = words if words[0] else [parameter.opts[0], text]
        found = main([*path.split(), *words])
        said = capsys.readouterr().err
        assert (code, True) == (found, "xpected one from" in said), (text, said)
        assert len(said) < 400


def test_there_are_numbers() -> None:
    assert len(NUMBERS) > 100


@pytest.mark.parametrize("text", ["9" * 5_000, f"{1 << 63}", "٣", "²"])
def test_texts_with_numbers_are_refused_too(text: str) -> None:
    for read in (
        lambda: parse_point(text, 0),
        lambda: parse_point(f"-{text}", 0),
        lambda: parse_point(f"@{text}", 0),
        lambda: parse_numbers(text),
        lambda: parse_numbers(f"0-{text}"),
        lambda: parse_assignment(f"1:{text}"),
        lambda: parse_bytes(text),
        lambda: parse_whole_number(text, "a number"),
    ):
        with pytest.raises((UnreadableArgument, UnreadableTime)):
            read()
    with pytest.raises(UnreadableTime):
        parse_time_ms(f"-{text}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("00000000000000000000000000000000000000000000001", 1),
        (f"{(1 << 53) + 1}", (1 << 53) + 1),
        (f"{INT64_MAX}", INT64_MAX),
        ("9007199254740993KB", 9_007_199_254_740_993_000),
        ("1.5GiB", 3 << 29),
        ("0.0005k", 1),
        ("0.0004k", 0),
        ("50MB/s", 50_000_000),
    ],
)
def test_sizes_are_exact(text: str, expected: int) -> None:
    assert expected == parse_bytes(text)


@pytest.mark.parametrize(
    "text",
    ["9" * 400, "9" * 5_000, f"{1 << 63}", "8388608TiB", "", "-1", "nan", "1e3", "0." + "1" * 99],
)
def test_a_size_beyond_64_bits_is_refused(text: str) -> None:
    with pytest.raises(UnreadableArgument) as refused:
        parse_bytes(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["1e-320", "1e400", "nan", "-1", "0", "", "0.0000001x", "inf"])
def test_a_speed_that_no_clock_has_is_refused(text: str) -> None:
    with pytest.raises(UnreadableArgument):
        parse_speed(text)
    assert [1.0, 0.5, None] == [parse_speed(word) for word in ("1x", "0.5", "max")]


def test_signs_and_zeros_are_read() -> None:
    assert [7, -7, 7] == [read_whole(text) for text in ("+7", "-7", "007")]
