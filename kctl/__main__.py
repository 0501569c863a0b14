"""The entry point: picks the noun from argv, imports only its module, maps errors to exits."""

from __future__ import annotations

import gc
import os
import sys
from errno import ENOSPC
from typing import TYPE_CHECKING, Any, NoReturn

from kctl import exits
from kctl.app import NOUNS, READERS, closest, help_text

if TYPE_CHECKING:
    from types import TracebackType


def main(argv: list[str] | None = None) -> int:
    """Run kctl and return its exit code; every error is turned into one."""
    args = sys.argv[1:] if argv is None else argv
    try:
        code = _dispatch(args)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        return exits.interrupted(interrupt)
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as stop:
        # Typer turns a closed pipe into an exit of its own.
        if isinstance(stop.__context__, BrokenPipeError):
            return _reader_gone()
        raise
    except Exception as error:
        # Earlier output to stdout must precede the error.
        _settle_output()
        code = _report(error)
    return code


def _dispatch(args: list[str]) -> int:
    """Run the command that the first argument names; return the process's exit code."""
    if not args or args[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text())
        return exits.OK if args else exits.USAGE
    if args[0] in ("-V", "--version"):
        from engine import __version__

        sys.stdout.write(f"kctl {__version__}\n")
        return exits.OK
    if args[0] == "__complete":
        from kctl.completion_live import complete

        return complete(args[1:])
    noun = NOUNS.get(args[0])
    if noun is None:
        return _unknown(args[0])
    return _run(args[0], noun.module, args[1:])


def _unknown(argument: str) -> int:
    """Print an unknown command or option with the nearest known one; return the exit code."""
    near = closest(argument)
    what = "option" if argument.startswith("-") else "command"
    sys.stderr.write(f"error: no such {what}: {argument}\n")
    sys.stderr.write(f"hint: try `kctl {near}`\n" if near else "hint: `kctl --help` lists them\n")
    return exits.USAGE


def _run(name: str, module: str, args: list[str]) -> int:
    """Import the module of one command, run it with its arguments, and return the exit code."""
    from importlib import import_module

    if name not in READERS:
        from kctl.typer_alone import import_typer

        import_typer()
    commands = import_module(f"kctl.commands.{module}.app")
    runner = getattr(commands, "run", None)
    if runner is not None:
        _collect_from_here()
        return int(runner(args))
    return run_typer(commands.app, f"kctl {name}", args)


def run_typer(app: Any, prog: str, args: list[str]) -> int:
    """Run a Typer application without letting it exit or print tracebacks."""
    from kctl.guarded import with_guard
    from kctl.named_command import command_for
    from kctl.numbers import with_ranges
    from kctl.verbosity import with_verbose

    command = with_guard(command_for(app, args), prog.removeprefix("kctl "))
    command = with_ranges(with_verbose(command))
    _collect_from_here()
    code = command.main(args=args, prog_name=prog, standalone_mode=False)
    return code if isinstance(code, int) else exits.OK


def _report(error: Exception) -> int:
    """Print an error and its hint; returns the exit code."""
    from engine.errors import EngineError

    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _report_usage(error)
    if type(error).__name__ == "Abort":
        return exits.INTERRUPTED
    if isinstance(error, EngineError):
        from kctl.hints import hint_for

        hint = hint_for(error)
        sys.stderr.write(f"error: {error}\n")
        if hint:
            sys.stderr.write(f"hint: {hint}\n")
        return int(getattr(error, "exit_code", exits.FAILED))
    if isinstance(error, OSError) and error.filename is None:
        # Files are read and written by ports with errors of their own: this is the output.
        sys.stdout = _nowhere()
        sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
        if error.errno == ENOSPC:
            sys.stderr.write("hint: what was written before is incomplete; make room, run again\n")
        return exits.FAILED
    return _internal(error)


def _report_usage(error: Any) -> int:
    """Print a usage error; returns the exit code."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{message}\n")
        return int(error.exit_code)
    sys.stderr.write(f"error: {message}\n")
    if error.ctx is not None:
        sys.stderr.write(f"hint: `{error.ctx.command_path} --help` shows the usage\n")
    return int(error.exit_code)


def _settle_output() -> None:
    """Flush output after an error; the interpreter would report a failure in its own words."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = _nowhere()


def _nowhere() -> object:
    """Return stdout with its file descriptor on /dev/null, for text that cannot be written.

    The interpreter flushes the buffered text at its end, and would fail again.
    """
    stdout = sys.__stdout__ or sys.stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    return stdout


def _internal(error: Exception) -> int:
    """Print an unexpected error and return its exit code; with KCTL_DEBUG raise it."""
    if os.environ.get("KCTL_DEBUG"):
        raise error
    sys.stderr.write(f"internal error: {type(error).__name__}: {error}\n")
    sys.stderr.write("hint: run again with KCTL_DEBUG=1 and report what it prints\n")
    return exits.INTERNAL


def _reader_gone() -> int:
    """Point stdout nowhere, so that the interpreter's last flush does not complain."""
    sys.stdout = _nowhere()
    return exits.BROKEN_PIPE


def entry() -> NoReturn:
    """Run as a program: this process ends with the command."""
    _end_process(own_process())


def own_process() -> int:
    """Run the command for which this process was started; return its exit code.

    Such a process may skip garbage collection and the interpreter's shutdown, unlike one that calls
    kctl as a library.
    """
    exits.OwnProcess.is_own = True
    sys.excepthook = _exit_if_interrupted
    # What is imported lives as long as the process: there is nothing to collect.
    gc.disable()
    try:
        _end_in_order_on_sigterm()
        from kctl.standard_streams import prepare_streams

        prepare_streams()
        code = main()
    except KeyboardInterrupt as interrupt:
        code = exits.interrupted(interrupt)
    if code == exits.INTERRUPTED and exits.Terminated.is_raised:
        # Typer has one exit code for both.
        code = exits.TERMINATED
    if code in (exits.INTERRUPTED, exits.TERMINATED):
        _ignore_signals()
    return code


def _collect_from_here() -> None:
    """Enable garbage collection; objects of the imports are frozen, and never scanned."""
    if exits.OwnProcess.is_own:
        gc.freeze()
        gc.enable()


def _end_process(code: int) -> NoReturn:
    """End the process without the interpreter's shutdown, which takes 20 ms to free objects.

    The shutdown runs if something waits for it: registered calls, threads, profilers, warnings. It
    does not while a query is left behind, whose thread it would break off inside of DuckDB.
    """
    threads = sys.modules.get("threading")
    is_awaited = (
        "atexit" in sys.modules
        or (threads is not None and threads.active_count() > 1)
        or sys.gettrace() is not None
        or sys.getprofile() is not None
        or bool(sys.warnoptions)
    )
    queries = sys.modules.get("engine.analysis.query_thread")
    if not is_awaited or (queries is not None and queries.is_left_behind()):
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            # The interpreter reports it.
            sys.exit(code)
        os._exit(code)
    sys.exit(code)


def _end_in_order_on_sigterm() -> None:
    """Make SIGTERM end a command as Ctrl-C does, so that its processes and files are removed.

    A SIGTERM that the calling shell set to be ignored is still ignored.
    """
    signals = _signals()

    def terminate(_number: int, _frame: object) -> None:
        raise exits.Terminated

    if signals.getsignal(signals.SIGTERM) == signals.SIG_DFL:
        signals.signal(signals.SIGTERM, terminate)


def _signals() -> Any:
    """Return the module below `signal`, whose enumerations would slow down every command."""
    from importlib import import_module

    return import_module("_signal")


def _exit_if_interrupted(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Replace `sys.excepthook`: a signal that met no handler ends the process without a traceback.

    A second signal may arrive between any two calls while the first one ends the command.
    """
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _ignore_signals()
    raise SystemExit(exits.interrupted(error))


def _ignore_signals() -> None:
    """Ignore signals from here on: the interpreter would print where a second one met it."""
    while True:
        try:
            signals = _signals()
            for number in (signals.SIGINT, signals.SIGTERM):
                signals.signal(number, signals.SIG_IGN)
            return
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    entry()
