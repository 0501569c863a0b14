"""Regular expressions as options of Kafka's tools have them. Differs: they are Python's."""

from __future__ import annotations

import re

from kctl.compat.java_failures import ToolFailure


def java_pattern(text: str) -> re.Pattern[str]:
    """Return a pattern; raises ToolFailure."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ToolFailure(
            "java.util.regex.PatternSyntaxException", f"{error} near index {error.pos}\n{text}"
        ) from error
