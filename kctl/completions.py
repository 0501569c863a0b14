"""Completion scripts for bash, zsh and fish, generated from the commands.

Commands, options and constant values are in the scripts, so that they need no Python. Values that
depend on a file or a cluster come from `kctl __complete` (`completion_live.py`).

`completions/` contains the scripts; a test compares them with this module's output.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.app import NOUNS
from kctl.completion_values import KEY_KINDS, LIVE, NONE, keys_of, kind_of
from kctl.verbosity import add_verbose

if TYPE_CHECKING:
    from typer._click.core import Command

SHELLS = ("bash", "zsh", "fish")


class CommandCompletions(NamedTuple):
    """The words that can follow a command; `path` is the command without `kctl`."""

    path: str
    summary: str
    options: tuple[tuple[str, str], ...]
    children: tuple[tuple[str, str], ...]
    #: Kind of values (`completion_values.py`) of each option with a value.
    values: tuple[tuple[str, str], ...] = ()
    #: Kind of its arguments.
    argument: str = NONE


def all_commands() -> list[CommandCompletions]:
    """Return every command of kctl with its options, values and subcommands, for completion."""
    top = tuple((name, noun.summary) for name, noun in NOUNS.items())
    commands = [CommandCompletions("", "kctl", (("--help", "Show help"), ("--version", "")), top)]
    for name, noun in NOUNS.items():
        commands += _command_tree(name, noun.summary, _command_of(noun.module))
    return commands


def _command_of(module: str) -> Command:
    """Return the click command of a module, with -v added if it connects to a cluster."""
    from typer.main import get_command

    return add_verbose(get_command(import_module(f"kctl.commands.{module}.app").app))


def _command_tree(path: str, summary: str, command: Any) -> list[CommandCompletions]:
    """Return the completions of a command and, depth first, of its subcommands."""
    children = getattr(command, "commands", {})
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    named = [
        (opt, param)
        for param in shown
        for opt in (*param.opts, *param.secondary_opts)
        if opt.startswith("-")
    ]
    options = [(opt, _first_sentence(param.help)) for opt, param in named]
    options.append(("--help", "Show help"))
    values = [(opt, kind_of(path, p)) for opt, p in named if not getattr(p, "is_flag", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    argument = kind_of(path, arguments[0]) if arguments else NONE
    words = tuple((name, _first_sentence(child.help)) for name, child in children.items())
    unique = tuple(dict(options).items())
    commands = [CommandCompletions(path, summary, unique, words, tuple(values), argument)]
    for name, child in children.items():
        commands += _command_tree(f"{path} {name}", _first_sentence(child.help), child)
    return commands


def _first_sentence(text: str | None) -> str:
    """Return the first sentence of a help text without quotes, which would end a shell's string."""
    line = (text or "").strip().split("\n", 1)[0]
    return line.split(". ", 1)[0].rstrip(".").replace("'", "").replace('"', "")


def script(shell: str) -> str:
    """Return the completion script for a shell: bash, zsh or fish."""
    return {"bash": _bash_script, "zsh": _zsh_script, "fish": _fish_script}[shell](all_commands())


def _option_branches(commands: list[CommandCompletions], line: str) -> list[str]:
    """Return the branches of a shell's `case "$path $option"`, one for each kind of values.

    `line` is their form, with places for the patterns and the kind.
    """
    by_kind: dict[str, list[str]] = {}
    for command in commands:
        for option, kind in command.values:
            by_kind.setdefault(kind, []).append(f'"{command.path} {option}"')
    return [line.format("|".join(by_kind[kind]), kind) for kind in by_kind]


def _argument_branches(commands: list[CommandCompletions], line: str) -> list[str]:
    """Return the branches of a shell's `case "$path"`, one for each kind of arguments.

    `line` is their form, with places for the patterns and the kind.
    """
    by_kind: dict[str, list[str]] = {}
    for command in commands:
        if command.argument != NONE:
            by_kind.setdefault(command.argument, []).append(f'"{command.path}"')
    return [line.format("|".join(by_kind[kind]), kind) for kind in by_kind]


def _values_function(words: str, line: str) -> list[str]:
    """Return the shell function `_kctl_values`, for bash and zsh, as lines.

    It prints the values of a kind (the argument), such as topic names, each with a `=` behind it if
    the kind ends so. Names that a cluster or a file has are printed by `kctl __complete`.

    `words` and `line` are the shell's expressions for the words and for the complete line.
    """
    return [
        "_kctl_values() {",
        "  local kind=$1 ending= keys=",
        '  case $kind in *=) ending="=" kind=${kind%=} ;; esac',
        f'  case "$kind {line}" in config-keys*" --broker"*) kind=broker-keys ;; '
        "config-keys*) kind=topic-keys ;; esac",
        "  case $kind in",
        '    "words "*) keys=${kind#words } ;;',
        *(f'    {kind}) keys="{" ".join(keys_of(kind))}" ;;' for kind in KEY_KINDS),
        f'    {"|".join(LIVE)}) kctl __complete "$kind" {words} 2>/dev/null ;;',
        "  esac",
        '  [ -z "$keys" ] || printf "%s\\n" $(echo "$keys" | sed "s/ /$ending /g; s/\\$/$ending/")',
        "}",
    ]


def _bash_script(commands: list[CommandCompletions]) -> str:
    """Return the completion script for bash, with cases for these commands."""
    cases = []
    for command in commands:
        words = [name for name, _ in command.children] + [name for name, _ in command.options]
        cases.append(f'    "{command.path}") words="{" ".join(words)}" ;;')
    groups = "|".join(c.path for c in commands if c.children and c.path) or "-"
    return "\n".join(
        [
            "# bash completion for kctl; source it or put it where bash-completion looks.",
            "# The line is passed as it is: COMP_WORDS has been split at = and :, too.",
            *_values_function('--line "${COMP_LINE:0:COMP_POINT}"', "$COMP_LINE"),
            "# Offers each line that begins as the word does. Names are data: `compgen -W` would",
            "# run the commands in them, and an unquoted `$(...)` match files.",
            "_kctl_offer() {",
            "  local value",
            "  COMPREPLY=()",
            "  while IFS= read -r value; do",
            '    case $value in "$word"*) COMPREPLY+=("$value") ;; esac',
            "  done",
            "}",
            "_kctl() {",
            "  local word=${COMP_WORDS[COMP_CWORD]} path=${COMP_WORDS[1]} words= kind= option=",
            '  [ "$COMP_CWORD" -eq 0 ] || option=${COMP_WORDS[COMP_CWORD-1]}',
            "  # An equals sign is a word of its own here.",
            '  if [ "$word" = "=" ]; then option="=$option" word=; fi',
            '  if [ "$option" = "=" ]; then option="=${COMP_WORDS[COMP_CWORD-2]}"; fi',
            "  # What is behind a key and its =, or behind a colon, begins no word of its own.",
            '  case "$word$option" in',
            "    :*|*:) COMPREPLY=(); return ;;",
            "    *=-*) option=${option#=} ;;",
            "    *=*.location|*=*.file|*=*.dir|*=*.dirs) kind=files ;;",
            "    *=*) kind=none ;;",
            "  esac",
            '  if [ "$COMP_CWORD" -eq 1 ]; then path=; fi',
            "  case $path in",
            f'    {groups}) [ "$COMP_CWORD" -gt 2 ] && path="$path ${{COMP_WORDS[2]}}" ;;',
            "  esac",
            '  case "$path $option" in',
            *_option_branches(commands, '    {}) kind="{}" ;;'),
            "  esac",
            '  case "$kind:$word" in',
            "    :-*) ;;",
            '    :*) case "$path" in',
            *_argument_branches(commands, '      {}) kind="{}" ;;'),
            "    esac ;;",
            "  esac",
            "  case $kind in",
            '    files) _kctl_offer < <(compgen -f -- "$word"); return ;;',
            '    folders) _kctl_offer < <(compgen -d -- "$word"); return ;;',
            "    none) COMPREPLY=(); return ;;",
            "    # In a file name an equals sign would be escaped.",
            '    ?*) [ "${kind%=}" = "$kind" ] || compopt -o nospace +o filenames 2>/dev/null',
            '      _kctl_offer < <(_kctl_values "$kind"); return ;;',
            "  esac",
            "  case $path in",
            *cases,
            "  esac",
            '  _kctl_offer < <(printf "%s\\n" $words)',
            '  [ ${#COMPREPLY[@]} -gt 0 ] || _kctl_offer < <(compgen -f -- "$word")',
            "}",
            "complete -o filenames -F _kctl kctl",
            "",
        ]
    )


def _zsh_script(commands: list[CommandCompletions]) -> str:
    """Return the completion script for zsh, with cases for these commands."""
    groups = "|".join(c.path for c in commands if c.children and c.path)
    lines = [
        "#compdef kctl",
        "# zsh completion for kctl; put it in a folder of $fpath as _kctl.",
        *_values_function('"${(@Q)words[2,-1]}"', "$words"),
        "_kctl() {",
        "  local noun= kind= option=$words[CURRENT-1] word=$words[CURRENT]",
        "  local -a choices found",
        "  (( CURRENT > 2 )) && noun=$words[2]",
        f'  case $noun in ({groups}) (( CURRENT > 3 )) && noun="$noun $words[3]" ;; esac',
        "  case $word in (--*=*) option=${word%%=*}; compset -P '*=' ;; esac",
        '  case "$noun $option" in',
        *_option_branches(commands, '    ({}) kind="{}" ;;'),
        "  esac",
        '  case "$kind:$word" in',
        "    (:-*) ;;",
        '    (:*) case "$noun" in',
        *_argument_branches(commands, '      ({}) kind="{}" ;;'),
        "    esac ;;",
        "  esac",
        "  case $kind in",
        "    (files) _files; return ;;",
        "    (folders) _files -/; return ;;",
        "    (none) return 1 ;;",
        '    (?*) found=(${(f)"$(_kctl_values $kind)"})',
        "      case $kind in (*=) compadd -S '' -a found ;; (*) compadd -a found ;; esac",
        "      return ;;",
        "  esac",
        "  case $noun in",
    ]
    for command in commands:
        entries = [_zsh_entry(name, text) for name, text in (*command.children, *command.options)]
        lines.append(f"    ('{command.path}') choices=({' '.join(entries)}) ;;")
    lines += ["  esac", "  _describe kctl choices || _files", "}", "compdef _kctl kctl", ""]
    return "\n".join(lines)


def _zsh_entry(name: str, text: str) -> str:
    """Return a choice for zsh's _describe, quoted, with colons in its text escaped.

    `name` is a command or an option, `text` its help, "" for none.
    """
    shown = text.replace(":", "\\:")
    return f"'{name}:{shown}'" if shown else f"'{name}'"


def _fish_script(commands: list[CommandCompletions]) -> str:
    """Return the completion script for fish, with lines for these commands."""
    keys = {kind: " ".join(keys_of(kind)) for kind in KEY_KINDS}
    lines = [
        "# fish completion for kctl; put it in ~/.config/fish/completions/kctl.fish.",
        "function __kctl_values",
        "  set -l kind (string replace -r '=$' '' -- $argv[1])",
        "  set -l ending (string match -r '=$' -- $argv[1])",
        "  set -l line (commandline -opc)",
        '  if test "$kind" = config-keys',
        "    set kind topic-keys",
        "    contains -- --broker $line; and set kind broker-keys",
        "  end",
        "  switch $kind",
        *(
            f"    case {kind}; printf '%s\\n' {words} | string replace -r '$' \"$ending\""
            for kind, words in keys.items()
        ),
        "    case '*'; kctl __complete $kind $line[2..-1] 2>/dev/null",
        "  end",
        "end",
    ]
    for command in commands:
        when = _fish_condition(command.path)
        for name, text in command.children:
            lines.append(f"complete -c kctl -n '{when}' -f -a '{name}' -d '{text}'")
        kinds = dict(command.values)
        for name, text in command.options:
            dash = "-l" if name.startswith("--") else "-s"
            takes = _fish_values(kinds[name]) if name in kinds else ""
            lines.append(
                f"complete -c kctl -n '{when}' {dash} {name.lstrip('-')}{takes} -d '{text}'"
            )
        if command.argument not in (NONE, "files", "folders"):
            given = _fish_values(command.argument).replace(" -x", " -f", 1)
            lines.append(f"complete -c kctl -n '{when}'{given}")
    return "\n".join(lines) + "\n"


def _fish_values(kind: str) -> str:
    """Return the options of fish's `complete` that offer values of a kind, after a space.

    -x offers only these values, -r also file names.
    """
    if kind.startswith("words "):
        return f" -x -a '{kind.removeprefix('words ')}'"
    if kind == "files":
        return " -r"
    if kind == "folders":
        return " -x -a '(__fish_complete_directories)'"
    return " -x" if kind == NONE else f" -x -a '(__kctl_values {kind})'"


def _fish_condition(path: str) -> str:
    """Return fish's condition that the words of `path` are typed; for "" that no command is."""
    if not path:
        return "__fish_use_subcommand"
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split())
