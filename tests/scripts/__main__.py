"""Run scripts by hand: `python -m tests.scripts [--rewrite] [FILE …]`, all of them by default.

With `--rewrite` each script then expects what it prints; read the difference before keeping it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.scripts.commands import Script
from tests.scripts.language import differences, rewritten

FOLDER = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Run or rewrite scripts; returns 1 if one does not print what it says."""
    is_rewriting = "--rewrite" in arguments
    paths = [Path(word) for word in arguments if not word.startswith("--")]
    is_failed = False
    for path in paths or sorted(FOLDER.glob("*.txt")):
        text = path.read_text()
        if is_rewriting:
            path.write_text(rewritten(text, Script().run))
            continue
        for difference in differences(text, Script().run):
            print(f"{path.name}, {difference}")
            is_failed = True
    return int(is_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
