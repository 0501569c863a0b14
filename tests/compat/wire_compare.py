"""Ask a broker of Kafka and one of ours the same, and print where their answers differ.

    python -m tests.compat.wire_compare --real HOST:PORT --ours HOST:PORT [--only REGEX] [--seed N]

Both must be fresh, of one broker with the same settings and `auto.create.topics.enable=false`, and
are changed a lot. Texts of errors and the order of lists are compared, but fail the run only with
`--messages` and `--orders`. With `--accepted`, known differences are printed too.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable

from tests.compat.wire import CASES
from tests.compat.wire.accepted import accepted, unseen
from tests.compat.wire.pair import Difference, Pair

_TEXT_MAX = 400


def main() -> int:
    """Run; returns 1 where something differs."""
    given = _arguments()
    pair = Pair(given.real, given.ours)
    pair.seed = given.seed
    for name, case in CASES.items():
        if not re.search(given.only, name):
            continue
        pair.prefix = f"{given.prefix}-{name.replace('.', '-')}"
        before, start = len(pair.differences), time.monotonic()
        try:
            case(pair)
        except Exception as error:
            pair.note(name, "value", "<the case itself>", "", f"{type(error).__name__}: {error}")
        finally:
            pair.close()
        found = len(pair.differences) - before
        print(f"# {name}: {found} in {time.monotonic() - start:.1f} s", flush=True)
    return _report(pair, given)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prefix", default=f"w{int(time.time()) % 100_000}")
    parser.add_argument("--each", type=int, default=3, help="how many of a kind to print")
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--accepted", action="store_true")
    return parser.parse_args()


def _report(pair: Pair, given: argparse.Namespace) -> int:
    known = [one for one in pair.differences if accepted(one)]
    left = [one for one in pair.differences if not accepted(one)]
    for one in known if given.accepted else ():
        print(f"accepted: {_text(one)}")
    print_differences(left, given.each)
    for pattern in () if given.only else unseen(known):
        print(f"accepted and not seen: {pattern}")
    print("asked:", ", ".join(f"{name} {count}" for name, count in sorted(pair.requested.items())))
    kinds = {kind: sum(one.kind == kind for one in left) for kind in ("value", "order", "message")}
    print(f"asked {sum(pair.requested.values())}, accepted {len(known)}, differences {kinds}")
    is_wrong = kinds["value"] or given.messages * kinds["message"] or given.orders * kinds["order"]
    return int(bool(is_wrong))


def print_differences(differences: Iterable[Difference], each: int) -> None:
    """Print differences, of those with one cause no more than `each`."""
    groups: dict[str, list[Difference]] = {}
    for one in differences:
        groups.setdefault(_kin(one), []).append(one)
    for found in groups.values():
        for one in found[:each]:
            print(_text(one))
        if len(found) > each:
            print(f"    … and {len(found) - each} like it")


def _kin(one: Difference) -> str:
    """Return what differences of one cause have in common."""
    values = f"{one.real!r} {one.ours!r}"
    words = values if len(values) < 80 else ""
    return re.sub(r"[0-9]+", "0", f"{one.kind} {one.label.split()[0]} {one.path} ") + words


def _text(one: Difference) -> str:
    real, ours = (_short(one.real, one.ours), _short(one.ours, one.real))
    return f"{one.kind} {one.label} {one.path}\n    real {real}\n    ours {ours}"


def _short(value: object, other: object) -> str:
    text, beside = repr(value), repr(other)
    if len(text) <= _TEXT_MAX:
        return text
    at = next(
        (n for n, pair in enumerate(zip(text, beside, strict=False)) if pair[0] != pair[1]), 0
    )
    return f"…({len(text)}, differs at {at}) {text[max(0, at - 40) : at + _TEXT_MAX]}"


if __name__ == "__main__":
    sys.exit(main())
