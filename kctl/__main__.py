"""The entry point: selects the noun in argv, imports only its module, maps errors to exit codes."""

from __future__ import annotations

import gc
import os
import sys
from errno import ENOSPC
from typing import TYPE_CHECKING, NoReturn, cast

from kctl import exits
from kctl.app import NOUNS, READERS, closest_noun, help_text

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from typer import Typer
    from typer._click.exceptions import UsageError


def main(argv: list[str] | None = None) -> int:
    """Run kctl and return its exit code; every error is converted to an exit code."""
    args = sys.argv[1:] if argv is None else argv
    try:
        code = _dispatch(args)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        return exits.interrupted(interrupt)
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as stop:
        # Typer raises SystemExit for a closed pipe.
        if isinstance(stop.__context__, BrokenPipeError):
            return _reader_gone()
        raise
    except Exception as error:
        # Earlier output to stdout must precede the error.
        _settle_output()
        code = _report(error)
    return code


def _dispatch(args: list[str]) -> int:
    """Run the command that the first argument names; returns the exit code."""
    if not args or args[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text())
        return exits.OK if args else exits.USAGE
    if args[0] in ("-V", "--version"):
        from engine import __version__

        sys.stdout.write(f"kctl {__version__}\n")
        return exits.OK
    if args[0] == "__complete":
        from kctl.completion_live import print_completions

        return print_completions(args[1:])
    noun = NOUNS.get(args[0])
    if noun is None:
        return _unknown(args[0])
    return _run(args[0], noun.module, args[1:])


def _unknown(argument: str) -> int:
    """Print that a command or option does not exist, with a similar one; returns USAGE."""
    near = closest_noun(argument)
    what = "option" if argument.startswith("-") else "command"
    sys.stderr.write(f"error: no such {what}: {argument}\n")
    sys.stderr.write(f"hint: try `kctl {near}`\n" if near else "hint: `kctl --help` lists them\n")
    return exits.USAGE


def _run(name: str, module: str, args: list[str]) -> int:
    """Import a command's module and run it with its arguments; returns the exit code."""
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


def run_typer(app: Typer, prog: str, args: list[str]) -> int:
    """Run a Typer application so that it neither exits nor prints tracebacks.

    Returns the exit code; errors are raised.
    """
    from kctl.guarded import with_guard
    from kctl.named_command import command_for
    from kctl.numbers import set_ranges
    from kctl.verbosity import add_verbose

    command = with_guard(command_for(app, args), prog.removeprefix("kctl "))
    command = set_ranges(add_verbose(command))
    _collect_from_here()
    code = command.main(args=args, prog_name=prog, standalone_mode=False)
    return code if isinstance(code, int) else exits.OK


def _report(error: Exception) -> int:
    """Print an error with its hint; returns the exit code."""
    from engine.errors import EngineError

    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _report_usage(cast("UsageError", error))
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
        # File ports raise their own errors, so that this OSError comes from stdout.
        sys.stdout = _nowhere()
        sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
        if error.errno == ENOSPC:
            sys.stderr.write("hint: what was written before is incomplete; make room, run again\n")
        return exits.FAILED
    return _internal(error)


def _report_usage(error: UsageError) -> int:
    """Print an error that Typer found in the arguments; returns its exit code."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{message}\n")
        return int(error.exit_code)
    sys.stderr.write(f"error: {message}\n")
    if error.ctx is not None:
        from kctl.usage_hints import usage_hint

        sys.stderr.write(f"hint: {usage_hint(error)}\n")
    return int(error.exit_code)


def _settle_output() -> None:
    """Flush stdout after an error, or discard its text if that fails.

    Otherwise the interpreter would print its own message at exit.
    """
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = _nowhere()


def _nowhere() -> object:
    """Redirect stdout's file descriptor to /dev/null, and return stdout.

    The interpreter flushes buffered text at exit, which would fail again.
    """
    stdout = sys.__stdout__ or sys.stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    return stdout


def _internal(error: Exception) -> int:
    """Print an exception that is no error of kctl's own, and return the exit code INTERNAL.

    With KCTL_DEBUG it is raised, for its traceback.
    """
    if os.environ.get("KCTL_DEBUG"):
        raise error
    sys.stderr.write(f"internal error: {type(error).__name__}: {error}\n")
    sys.stderr.write("hint: run again with KCTL_DEBUG=1 and report what it prints\n")
    return exits.INTERNAL


def _reader_gone() -> int:
    """Redirect stdout to /dev/null, since its reader has closed the pipe; returns BROKEN_PIPE."""
    sys.stdout = _nowhere()
    return exits.BROKEN_PIPE


def entry() -> NoReturn:
    """Run as a program: the process ends with the command."""
    _end_process(own_process())


def own_process() -> int:
    """Run the command for which this process was started; returns its exit code.

    Unlike `main`, which other Python code may call, it may skip garbage collection and the
    interpreter's shutdown.
    """
    exits.OwnProcess.is_own = True
    sys.excepthook = _exit_if_interrupted
    # Imported objects live until the process ends: there is nothing to collect.
    gc.disable()
    try:
        _end_in_order_on_sigterm()
        from kctl.standard_streams import prepare_streams

        prepare_streams()
        code = main()
    except KeyboardInterrupt as interrupt:
        code = exits.interrupted(interrupt)
    if code == exits.INTERRUPTED and exits.Terminated.is_raised:
        # Typer has the same exit code for SIGINT and SIGTERM.
        code = exits.TERMINATED
    if code in (exits.INTERRUPTED, exits.TERMINATED):
        _ignore_signals()
    return code


def _collect_from_here() -> None:
    """Enable garbage collection once imports are done.

    Imported objects are frozen, so that they are never scanned.
    """
    if exits.OwnProcess.is_own:
        gc.freeze()
        gc.enable()


def _end_process(code: int) -> NoReturn:
    """End the process without the interpreter's shutdown, which takes 20 ms to free objects.

    The shutdown runs if something depends on it: atexit handlers, threads, profilers, warnings. It
    does not run while a query is left behind: its thread is inside DuckDB, or waits for Spark.
    """
    threads = sys.modules.get("threading")
    is_awaited = (
        "atexit" in sys.modules
        or (threads is not None and threads.active_count() > 1)
        or sys.gettrace() is not None
        or sys.getprofile() is not None
        or bool(sys.warnoptions)
    )
    queries = sys.modules.get("engine.analysis.interruptible")
    if not is_awaited or (queries is not None and queries.is_left_behind()):
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            # The interpreter's shutdown reports the failed flush.
            sys.exit(code)
        os._exit(code)
    sys.exit(code)


def _end_in_order_on_sigterm() -> None:
    """Make SIGTERM end a command like Ctrl-C, so that its processes and files are removed.

    If the calling shell set SIGTERM to be ignored, it stays ignored.
    """
    signals = _signals()

    def terminate(_number: int, _frame: object) -> None:
        """Raise Terminated in the main thread."""
        raise exits.Terminated

    if signals.getsignal(signals.SIGTERM) == signals.SIG_DFL:
        signals.signal(signals.SIGTERM, terminate)


def _signals() -> ModuleType:
    """Return the module `_signal`.

    Importing `signal`, with its enumerations, slows down every command.
    """
    from importlib import import_module

    return import_module("_signal")


def _exit_if_interrupted(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Replace `sys.excepthook`: an interrupt that was not caught exits without a traceback.

    A second signal may arrive at any point while the first one ends the command.
    """
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _ignore_signals()
    raise SystemExit(exits.interrupted(error))


def _ignore_signals() -> None:
    """Ignore further signals: the interpreter would print a traceback for them."""
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
