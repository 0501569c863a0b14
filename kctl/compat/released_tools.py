"""Run a tool that imitates several releases of Kafka: help, version, refusals, failures.

A module of such a tool has `SUMMARY` and

| names | the tool's arguments are |
|---|---|
| `options(release)`, `run(call, given)` | options only |
| `arguments(release)`, `run_arguments(call, given)` | options in the style of argparse4j |
| `commands(release)`, `common(release)`, `run_command(call, wanted)` | a command and its options |
| `run_unparsed(call)` | parsed by the tool itself |

Source: CommandLineUtils.maybePrintHelpOrVersion; the main methods of the tools.
"""

from __future__ import annotations

from types import ModuleType

from engine.client.errors import TimedOut, Unreachable
from kctl import exits
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import OptionsRefused, parse_options, usage_text
from kctl.compat.tool_call import ToolCall, ToolEnded


def run_released(module: ModuleType, call: ToolCall) -> int:
    """Run the tool that a module implements; returns its exit code.

    A module has `options`, `commands` or `arguments` for the style in which its Java class parses
    arguments, or else parses them itself in `run_unparsed`.
    """
    try:
        if hasattr(module, "options"):
            return _run_options(module, call)
        if hasattr(module, "commands"):
            return _run_command(module, call)
        if hasattr(module, "arguments"):
            return _run_arguments(module, call)
        return int(module.run_unparsed(call))
    except ToolEnded as ended:
        return ended.exit_code
    except OptionsRefused as error:
        return _refuse(module, call, error)
    except ToolFailure as failure:
        call.err.write(f'Exception in thread "main" {failure.trace()}')
    except (Unreachable, TimedOut) as error:
        call.err.write(f"{error}\n")
    finally:
        call.flush()
    return exits.FAILED


def _refuse(module: ModuleType, call: ToolCall, error: OptionsRefused) -> int:
    """Print why options are refused; returns the exit code."""
    if not error.shows_usage:
        call.err.write(f"{error}\n`{call.tool} --help` lists the options.\n")
    else:
        call.err.write(f"{error}\n{_usage(module, call)}")
    return exits.FAILED


def _usage(module: ModuleType, call: ToolCall) -> str:
    """Return the help of the tool."""
    return usage_text(call.tool, module.SUMMARY, module.options(call.release))


def _run_options(module: ModuleType, call: ToolCall) -> int:
    """Parse the options and run the tool, or print its help or version; returns the exit code."""
    given = parse_options(module.options(call.release), call.arguments)
    if not call.arguments or given.has("help"):
        call.err.write(_usage(module, call))
        return exits.FAILED
    if given.has("version"):
        call.out.write(f"{call.release.value}\n")
        return exits.OK
    return int(module.run(call, given))


def _run_command(module: ModuleType, call: ToolCall) -> int:
    """Parse the command and run the tool, or print its help or version; returns the exit code."""
    from kctl.compat.java_commands import (
        CommandRefused,
        HelpRequested,
        VersionRequested,
        parse_command,
    )

    try:
        wanted = parse_command(
            call.tool,
            module.SUMMARY,
            module.commands(call.release),
            call.arguments,
            common=module.common(call.release),
        )
    except HelpRequested as text:
        call.out.write(str(text))
        return int(module.help_code(call.release))
    except VersionRequested:
        call.out.write(f"{call.release.value}\n")
        return exits.OK
    except CommandRefused as error:
        call.err.write(f"{error}\n")
        return exits.FAILED
    return int(module.run_command(call, wanted))


def _run_arguments(module: ModuleType, call: ToolCall) -> int:
    """Parse the options and run the tool, or print its help; returns the exit code."""
    from kctl.compat.java_commands import CommandRefused, HelpRequested, read_arguments

    command = module.arguments(call.release)
    try:
        given = read_arguments(command, call.arguments)
    except HelpRequested as text:
        call.out.write(str(text))
        return exits.FAILED
    except CommandRefused as error:
        if call.arguments:
            call.err.write(f"{error}\n")
            return exits.FAILED
        call.out.write(str(error.help))
        return exits.OK
    try:
        return int(module.run_arguments(call, given))
    except CommandRefused as error:
        # An unreadable properties file counts as an invalid argument, too.
        call.err.write(f"{error}\n")
        return exits.FAILED
