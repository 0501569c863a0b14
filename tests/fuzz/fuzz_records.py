"""Coverage-guided fuzzing of the records room, by hand (the tests run a bounded random twin).

    pip install atheris && python -m tests.fuzz.fuzz_records -max_total_time=600

The first byte chooses between reading the rest as a batch (with its length set right or left
alone) and as compressed data. Any exception but CorruptRecord is a finding, and so is a way of
reading that disagrees with another.
"""

from __future__ import annotations

import struct
import sys

try:
    import atheris
except ImportError:
    sys.exit("fuzzing needs atheris: pip install atheris")

with atheris.instrument_imports(include=["engine"]):
    from tests.unit.records.damage import decompress_everything, read_everything


def fuzz_one(data: bytes) -> None:
    """Read one input."""
    if not data:
        return
    choice, rest = data[0] % 3, bytearray(data[1:])
    if choice == 0:
        decompress_everything(bytes(rest))
        return
    if choice == 1 and len(rest) > 12:
        struct.pack_into(">i", rest, 8, len(rest) - 12)
    read_everything(bytes(rest))


def main() -> None:
    """Run until stopped or told enough by libFuzzer's options."""
    atheris.Setup(sys.argv, fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
