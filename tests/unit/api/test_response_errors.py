"""How often errors count in drawn responses: as Kafka's classes of 3.9.1 counted them.

`error_counts_3_9_1.json` has AbstractResponse.errorCounts of the bytes of each response, without
those that name a partition twice, which Kafka counts once.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest

from engine.api.response_errors import error_counts
from engine.wire.codec import message_codec
from engine.wire.layout import StructLayout, message_layout
from tests.unit.wire.values import drawn_message

#: A version, the number of a draw, and how often each code counts.
Counted: TypeAlias = tuple[int, int, dict[str, int]]

_CODES = [0, 0, 0, 1, 3, 5, 25]
REAL: dict[str, list[Counted]] = json.loads(
    (Path(__file__).parent / "error_counts_3_9_1.json").read_text()
)


def _draw_codes(layout: StructLayout, message: Any, rng: Random) -> None:
    """Set all error codes of a message to codes that Kafka knows."""
    for field in layout.fields:
        if field.place == "absent":
            continue
        if field.attribute.endswith("error_code"):
            setattr(message, field.attribute, rng.choice(_CODES))
        elif field.struct is not None:
            value = getattr(message, field.attribute)
            for row in (value or ()) if field.is_array else filter(None, [value]):
                _draw_codes(field.struct, row, rng)


@pytest.mark.parametrize("name", sorted(REAL))
def test_errors_count_as_in_kafkas_classes(name: str) -> None:
    kind = f"{name}Response"
    for version, number, counted in REAL[name]:
        rng = Random(f"{name} {version} {number}")
        response = drawn_message(rng, kind, version, "3.9.1")
        _draw_codes(message_layout(kind, version), response, rng)
        codec = message_codec(kind, version)
        found = error_counts(name, codec.decode(codec.encode(response)))
        assert counted == {str(code): count for code, count in found.items() if count}, version
