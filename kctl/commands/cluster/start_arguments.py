"""Parse a plain `kctl cluster start` without Typer; see `app.py`."""

from __future__ import annotations

from typing import Any

#: Repeatable options of `start`, and the fields that they set.
_LISTS = {"--set": "settings", "--unset": "unset"}
#: Options with a text value, and the fields that they set.
_TEXTS = {
    "--data": "data",
    "--config": "config",
    "-o": "output",
    "--output": "output",
    "--racks": "racks",
    "--advertise": "advertise",
}
#: Options without a value: the field and the value that each sets.
_FLAGS = {
    "--foreground": ("foreground", True),
    "--processes": ("processes", True),
    "--one-process": ("processes", False),
    "--insecure": ("insecure", True),
    "--secure": ("secure", True),
}
#: Options with an integer: the field, and the minimum and maximum.
_NUMBERS = {
    "--brokers": (1, (1 << 31) - 1),
    "--port": (0, 65535),
    "--zookeeper-port": (0, 65535),
    "--log-dirs": (1, 100),
}
TIMEOUT_S = 300.0


def parse_simple_start(arguments: list[str]) -> dict[str, Any] | None:
    """Return the options of a simple `start`, None if an argument needs Typer's parser.

    Importing Typer takes longer than all else that `kctl cluster start` does.
    """
    requested: dict[str, Any] = {
        "settings": [],
        "unset": [],
        "foreground": False,
        "timeout_s": TIMEOUT_S,
    }
    requested.update(data=None, brokers=None, port=None, zookeeper_port=None, output="table")
    requested.update(from_logs=(), writable=False, racks=None, processes=None, log_dirs=None)
    requested.update(config=None, insecure=False, secure=False, advertise=None)
    left = iter(arguments)
    for argument in left:
        if argument in _FLAGS:
            name, requested_value = _FLAGS[argument]
            requested[name] = requested_value
            continue
        value = next(left, "-")
        if value.startswith("-"):
            return None
        if argument in _LISTS:
            requested[_LISTS[argument]].append(value)
        elif argument in _TEXTS:
            requested[_TEXTS[argument]] = value
        elif argument in _NUMBERS and value.isascii() and value.isdecimal() and len(value) < 19:
            least, largest = _NUMBERS[argument]
            if not least <= int(value) <= largest:
                return None
            requested[argument[2:].replace("-", "_")] = int(value)
        else:
            return None
    return requested
