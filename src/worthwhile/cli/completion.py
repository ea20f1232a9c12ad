"""`worthwhile completion`: a script that lets a shell complete commands, options and their values.

It is written once, from the parsers: completing starts no Python, which would take a while for every Tab.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from worthwhile.cli.commands import COMMANDS
from worthwhile.cli.help import add_parser
from worthwhile.cli.output import show

COMPLETION = """\
examples:
  eval "$(worthwhile completion bash)"                                   in ~/.bashrc
  eval "$(worthwhile completion zsh)"                                    in ~/.zshrc, after compinit
  worthwhile completion fish          kept as ~/.config/fish/completions/worthwhile.fish
"""
BASH = """\
_worthwhile() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{names}"
    else
        case "${{COMP_WORDS[1]}} $before" in
{values}
        *) case "${{COMP_WORDS[1]}}" in
{options}
            esac
            [[ $word == -* ]] || words="" ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _worthwhile worthwhile
"""
ZSH = """\
autoload -U bashcompinit && bashcompinit
"""


class Completion(NamedTuple):
    """What can follow a command: its options with their help, and the values of those that have a choice."""

    options: dict[str, str]
    values: dict[str, list[str]]


def add_commands(commands: Any) -> None:
    """completion"""
    parser = add_parser(commands, "completion", COMPLETION)
    parser.add_argument("shell", choices=tuple(SCRIPTS))
    parser.set_defaults(run=run_completion)


def run_completion(arguments: argparse.Namespace) -> int:
    """worthwhile completion"""
    script = SCRIPTS[arguments.shell](completions())
    show({"shell": arguments.shell, "script": script}, script.rstrip(), arguments.json)
    return 0


def completions() -> dict[str, Completion]:
    """Of every command."""
    from worthwhile.cli.main import parser
    from worthwhile.policies.registry import LIST

    choices = next(action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    commands = {}
    for name, command in choices.items():
        options = {word: action.help or "" for action in command._actions for word in action.option_strings}
        values = {
            word: list(LIST) if word == "--policy" else list(map(str, action.choices))
            for action in command._actions
            for word in action.option_strings or [""]
            if action.choices or word == "--policy"
        }
        commands[name] = Completion({word: says for word, says in options.items() if word.startswith("--")}, values)
    return commands


def bash(commands: dict[str, Completion]) -> str:
    """Functions of bash, which zsh understands as well."""
    values = "\n".join(
        f'        "{name} {option or name}") words="{" ".join(values)}" ;;'
        for name, completion in commands.items()
        for option, values in completion.values.items()
    )
    options = "\n".join(
        f'            {name}) words="{" ".join(completion.options)}" ;;' for name, completion in commands.items()
    )
    return BASH.format(names=" ".join(COMMANDS), values=values, options=options)


def zsh(commands: dict[str, Completion]) -> str:
    return ZSH + bash(commands)


def fish(commands: dict[str, Completion]) -> str:
    """One line for everything that can be completed, with what it is for."""
    lines = [
        f"complete -c worthwhile -n __fish_use_subcommand -f -a {name} -d {quoted(COMMANDS[name].help)}"
        for name in commands
    ]
    for name, completion in commands.items():
        where = f"complete -c worthwhile -n '__fish_seen_subcommand_from {name}'"
        for option, says in completion.options.items():
            values = completion.values.get(option)
            takes = f" -x -a {quoted(' '.join(values))}" if values else ""
            lines.append(f"{where} -l {option.removeprefix('--')} -d {quoted(says)}{takes}")
        if positional := completion.values.get(""):
            lines.append(f"{where} -f -a {quoted(' '.join(positional))}")
    return "\n".join(lines)


def quoted(text: str) -> str:
    """For fish, on one line."""
    plain = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
