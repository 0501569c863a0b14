"""Imports Typer without modules that kctl rarely needs: they take half of Typer's import time.

| Typer imports | for | here |
|---|---|---|
| platform, subprocess, traceback | browsers, pagers, pretty tracebacks | imported at first use |
| shellingham | the shell to install completions for | imported at first use |
| difflib, shutil | suggestions for unknown words, the width of help | imported at first use |
| pathlib, uuid | options of these types | never imported; kctl has none |

It also removes the search for suggestions that Typer makes before it reads `-o` as a short option.
Only for a process that ends with its command: in others, other code may use Typer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kctl import exits

if TYPE_CHECKING:
    from typer._click.parser import _ParsingState


class _NoParameter:
    """A stand-in for types that Typer compares types with, and that no parameter of kctl has."""


#: Names that Typer imports from a module: functions that import it when they are called, and types.
_FUNCTIONS: Final = {"difflib": ("get_close_matches",), "shutil": ("get_terminal_size",)}
_TYPES: Final = {
    "pathlib": ("Path",),
    "traceback": ("FrameSummary", "StackSummary"),
    "uuid": ("UUID",),
}
_MODULES: Final = (
    *("difflib", "pathlib", "platform", "shellingham", "shutil", "subprocess", "traceback"),
    "uuid",
)


class _LateModule(ModuleType):
    """A module that is imported when one of its attributes is used."""

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the real module, which is imported now."""
        # The import system asks for these attributes.
        if name.startswith("__"):
            raise AttributeError(name)
        attribute: object = getattr(import_module(self.__name__), name)
        return attribute


def import_typer() -> None:
    """Import Typer with substitutes for slow modules, in a process that ends with its command.

    If that fails, Typer is left to be imported normally.
    """
    if not exits.OwnProcess.is_own or "typer" in sys.modules:
        return
    try:
        with _stand_ins():
            import typer  # noqa: F401

            _skip_suggestions()
    except (ImportError, AttributeError, TypeError):
        # This release of Typer needs more of the modules than the stand-ins have.
        for name in [name for name in sys.modules if name.partition(".")[0] == "typer"]:
            del sys.modules[name]


def _skip_suggestions() -> None:
    """Make Typer's parser skip the search for options similar to a short one.

    Its result is never shown.
    """
    try:
        from typer._click.exceptions import NoSuchOption
        from typer._click.parser import _OptionParser
    except ImportError:
        # This release of Typer has another parser.
        return
    match = _OptionParser._match_long_opt

    def match_long_opt(
        self: _OptionParser, opt: str, explicit_value: str | None, state: _ParsingState
    ) -> None:
        """Parse a long option, or raise NoSuchOption at once for a short one."""
        if opt not in self._long_opt and opt[:2] not in self._opt_prefixes:
            raise NoSuchOption(opt, ctx=self.ctx)
        match(self, opt, explicit_value, state)

    _OptionParser._match_long_opt = match_long_opt  # type: ignore[method-assign]


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Replace modules that are not loaded yet in the block, in which Typer is imported."""
    stand_ins = {name: _stand_in(name) for name in _MODULES if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


def _stand_in(name: str) -> ModuleType:
    """Return a substitute for a module, which imports the real one when it is used."""
    module = _LateModule(name)
    for function in _FUNCTIONS.get(name, ()):
        setattr(module, function, _late_import(name, function))
    for kind in _TYPES.get(name, ()):
        setattr(module, kind, _NoParameter)
    return module


def _late_import(module: str, name: str) -> Callable[..., object]:
    """Return a function that imports a module and calls its function `name`.

    It replaces a function of a module that most commands do not need.
    """

    def call(*arguments: object, **named: object) -> object:
        """Import the module, and call the real function."""
        function: Callable[..., object] = getattr(import_module(module), name)
        return function(*arguments, **named)

    return call
