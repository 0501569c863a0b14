"""Completion scripts of bash, zsh and fish, made from the commands themselves.

The scripts are static: completing a word starts no Python. `completions/` holds them, and a
test keeps them equal to what this module makes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from kctl.app import NOUNS
from kctl.verbosity import with_verbose

SHELLS = ("bash", "zsh", "fish")


class CommandWords(NamedTuple):
    """What can follow one command: `path` is its words behind `kctl`."""

    path: str
    summary: str
    options: tuple[tuple[str, str], ...]
    children: tuple[tuple[str, str], ...]


def all_commands() -> list[CommandWords]:
    """Return every command of kctl with its options and subcommands."""
    top = tuple((name, noun.summary) for name, noun in NOUNS.items())
    commands = [CommandWords("", "kctl", (("--help", "Show help"), ("--version", "")), top)]
    for name, noun in NOUNS.items():
        commands += _walk(name, noun.summary, _command_of(noun.module))
    return commands


def _command_of(module: str) -> Any:
    from typer.main import get_command

    return with_verbose(get_command(import_module(f"kctl.commands.{module}").app))


def _walk(path: str, summary: str, command: Any) -> list[CommandWords]:
    children = getattr(command, "commands", {})
    options = [
        (opt, _first_sentence(param.help))
        for param in command.params
        for opt in param.opts
        if opt.startswith("-")
    ]
    options.append(("--help", "Show help"))
    words = tuple((name, _first_sentence(child.help)) for name, child in children.items())
    commands = [CommandWords(path, summary, tuple(dict(options).items()), words)]
    for name, child in children.items():
        commands += _walk(f"{path} {name}", _first_sentence(child.help), child)
    return commands


def _first_sentence(text: str | None) -> str:
    line = (text or "").strip().split("\n", 1)[0]
    return line.split(". ", 1)[0].rstrip(".").replace("'", "").replace('"', "")


def script(shell: str) -> str:
    """Return the completion script of one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](all_commands())


def _bash(commands: list[CommandWords]) -> str:
    cases = []
    for command in commands:
        words = [name for name, _ in command.children] + [name for name, _ in command.options]
        cases.append(f'    "{command.path}") words="{" ".join(words)}" ;;')
    groups = "|".join(c.path for c in commands if c.children and c.path) or "-"
    return "\n".join(
        [
            "# bash completion for kctl; source it or put it where bash-completion looks.",
            "_kctl() {",
            "  local word=${COMP_WORDS[COMP_CWORD]} path=${COMP_WORDS[1]} words=",
            '  if [ "$COMP_CWORD" -eq 1 ]; then path=; fi',
            "  case $path in",
            f'    {groups}) [ "$COMP_CWORD" -gt 2 ] && path="$path ${{COMP_WORDS[2]}}" ;;',
            "  esac",
            "  case $path in",
            *cases,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
            '  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi',
            "}",
            "complete -o filenames -F _kctl kctl",
            "",
        ]
    )


def _zsh(commands: list[CommandWords]) -> str:
    lines = [
        "#compdef kctl",
        "# zsh completion for kctl; put it in a folder of $fpath as _kctl.",
        "_kctl() {",
        "  local noun=",
        "  local -a choices",
        "  (( CURRENT > 2 )) && noun=$words[2]",
    ]
    groups = "|".join(c.path for c in commands if c.children and c.path)
    if groups:
        lines.append(
            f'  case $noun in ({groups}) (( CURRENT > 3 )) && noun="$noun $words[3]" ;; esac'
        )
    lines.append("  case $noun in")
    for command in commands:
        entries = [_zsh_entry(name, text) for name, text in (*command.children, *command.options)]
        lines.append(f"    ('{command.path}') choices=({' '.join(entries)}) ;;")
    lines += ["  esac", "  _describe kctl choices || _files", "}", "compdef _kctl kctl", ""]
    return "\n".join(lines)


def _zsh_entry(name: str, text: str) -> str:
    shown = text.replace(":", "\\:")
    return f"'{name}:{shown}'" if shown else f"'{name}'"


def _fish(commands: list[CommandWords]) -> str:
    lines = ["# fish completion for kctl; put it in ~/.config/fish/completions/kctl.fish."]
    for command in commands:
        when = _fish_condition(command.path)
        for name, text in command.children:
            lines.append(f"complete -c kctl -n '{when}' -f -a '{name}' -d '{text}'")
        for name, text in command.options:
            kind = "-l" if name.startswith("--") else "-s"
            lines.append(f"complete -c kctl -n '{when}' {kind} {name.lstrip('-')} -d '{text}'")
    return "\n".join(lines) + "\n"


def _fish_condition(path: str) -> str:
    if not path:
        return "__fish_use_subcommand"
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split())
