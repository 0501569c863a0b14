"""Typer without what kctl does not need of it."""

from __future__ import annotations

import subprocess
import sys

from typer.models import TyperPath

from tests.cli.commands import all_leaves

#: Modules that Typer names and a command need not have.
LEFT_OUT = ("difflib", "pathlib", "platform", "shutil", "subprocess", "traceback", "uuid")


def _output_of(code: str) -> str:
    prepared = "import sys\nfrom kctl import exits\nfrom kctl.typer_alone import import_typer\n"
    run = subprocess.run(
        [sys.executable, "-c", prepared + code], capture_output=True, text=True, check=True
    )
    return run.stdout


def test_typer_comes_without_what_kctl_does_not_need() -> None:
    code = f"exits.OwnProcess.is_own = True\nimport_typer()\nprint({LEFT_OUT} & sys.modules.keys())"
    code = code.replace(str(LEFT_OUT), str(set(LEFT_OUT)))
    assert "set()\n" == _output_of(f"{code}\nassert 'typer' in sys.modules")


def test_what_was_left_out_is_imported_where_it_is_used() -> None:
    code = (
        "exits.OwnProcess.is_own = True\nimport_typer()\nimport typer, typer.main, typer.core\n"
        "print(typer.core.get_close_matches('lst', ['list']))\n"
        "print(typer.main.platform.system(), typer.main.subprocess.DEVNULL)\n"
        "import shutil, subprocess; print(subprocess.DEVNULL)\n"
        "print(typer.get_terminal_size() == shutil.get_terminal_size())\n"
    )
    expected = ["['list']", "Linux -3", "-3", "True"]
    assert expected == _output_of(code).splitlines()


def test_other_processes_have_all_of_typer() -> None:
    code = "import_typer()\nassert 'typer' not in sys.modules\nimport typer, pathlib\n"
    assert "True\n" == _output_of(f"{code}print(typer.main.Path is pathlib.Path)")


def test_a_typer_that_needs_more_is_imported_with_all() -> None:
    code = (
        "import kctl.typer_alone as alone\nexits.OwnProcess.is_own = True\n"
        "alone._TYPES = {}\nimport uuid as kept\n"
        "def refusing(name):\n raise ImportError(name)\n"
        "alone._LateModule.__getattr__ = lambda self, name: refusing(name)\nimport_typer()\n"
        "assert 'typer' not in sys.modules\nimport typer, pathlib\n"
    )
    assert "True\n" == _output_of(f"{code}print(typer.main.Path is pathlib.Path)")


def test_no_parameter_has_a_type_that_is_stood_in_for() -> None:
    for path, command in all_leaves().items():
        for parameter in command.params:
            assert not isinstance(parameter.type, TyperPath), path
            assert "uuid" != parameter.type.name, path
