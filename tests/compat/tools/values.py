"""Draws values of options: mostly such as fit a stage, sometimes odd ones."""

from __future__ import annotations

import random

from tests.compat.tools.documents import FILES, MISSING
from tests.compat.tools.texts import LINES, PLAIN


class Values:
    """Draws values; contents of files are collected in `files`, and their paths begin `{WORK}`."""

    def __init__(self, rng: random.Random, odd_share: float) -> None:
        self._rng = rng
        self._odd_share = odd_share
        self._count = 0
        #: The files of the call that is drawn, by their names.
        self.files: dict[str, str] = {}

    def __call__(self, kind: str) -> str:
        """Return a value of a kind."""
        if kind == "server":
            return self._server()
        is_odd = self._rng.random() < self._odd_share
        if kind in FILES:
            return self._file(kind, is_odd=is_odd)
        return self._rng.choice(PLAIN[kind][is_odd])

    def lines(self) -> str:
        """Return what a producer may be given on its standard input."""
        return self._rng.choice(LINES)

    def _server(self) -> str:
        odd = (
            "",
            "nowhere",
            "nowhere.invalid:9092",
            "nowhere.invalid:9092,{BOOTSTRAP}",
            "127.0.0.1:x",
            ":9092",
            "127.0.0.1:99999",
            ",",
            "{BOOTSTRAP},{BOOTSTRAP}",
            "{BOOTSTRAP},",
            " {BOOTSTRAP}",
        )
        return self._rng.choice(odd) if self._rng.random() < 0.03 else "{BOOTSTRAP}"

    def _file(self, kind: str, *, is_odd: bool) -> str:
        if is_odd and self._rng.random() < 0.15:
            return MISSING
        self._count += 1
        name = f"{kind}-{self._count}"
        self.files[name] = self._rng.choice(FILES[kind][is_odd])
        return f"{{WORK}}/{name}"
