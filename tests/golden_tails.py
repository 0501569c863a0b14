"""What a broker of Kafka 3.9.1 made of logs whose offsets go wrong; see tests/golden/README.md."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

from tests.golden_cases import GOLDEN
from tests.recovery_tails import RECIPE_KINDS, LogRecipe, recipe_from

KINDS = RECIPE_KINDS


@cache
def _content() -> dict[str, Any]:
    path = GOLDEN / "recovery-tails" / "answers-3.9.1.json.gz"
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


@cache
def recipes_of(kind: str) -> tuple[LogRecipe, ...]:
    """Return the recipes of one kind of disorder."""
    recipes = (recipe_from(row) for row in _content()["recipes"])
    return tuple(recipe for recipe in recipes if recipe.kind == kind)


def answer_of(recipe: LogRecipe) -> dict[str, Any]:
    """Return what became of a recipe's log."""
    found: dict[str, Any] = _content()["answers"][recipe.name]
    return found
