"""All commands: what each is for, and the module that has it. Light, so that asking for one imports no other."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command: the module of this package that adds it to a parser, and its line in the overview."""

    module: str
    help: str


GROUPS: dict[str, dict[str, Command]] = {
    "real tasks": {
        "decide": Command("deciding", "choose an option for a task"),
        "report": Command("deciding", "say what came of a task"),
        "run": Command("run", "run a command with an option, and report it"),
        "work": Command("work", "run tasks and report them"),
        "serve": Command("serve", "schedulers over HTTP, with a dashboard"),
        "train": Command("work", "train real networks as tasks"),
    },
    "what was learned": {
        "status": Command("live", "how a scheduler stands"),
        "schedulers": Command("settings", "all schedulers of a store"),
        "tasks": Command("live", "the latest tasks"),
        "explain": Command("live", "why a task got its option"),
        "evaluate": Command("proof", "what another rule would have earned on this log"),
    },
    "settings": {
        "create": Command("settings", "make a scheduler"),
        "change": Command("settings", "change its settings"),
        "retire": Command("settings", "never choose an option again"),
        "restore": Command("settings", "undo retire, or forgive an option that failed"),
        "promote": Command("proof", "let the scheduler decide more of the tasks"),
        "token": Command("serve", "who may use the service"),
        "audit": Command("serve", "who changed what through the service"),
    },
    "the log": {
        "export": Command("live", "write the log as a table"),
        "import": Command("live", "learn from recorded history"),
        "forget": Command("live", "take features and reasons of tasks out of the store"),
        "rebuild": Command("live", "replay the log and compare"),
        "check": Command("live", "is everything still what was written?"),
    },
    "on paper": {
        "solve": Command("simulate", "the best there is, when everything is known"),
        "simulate": Command("simulate", "try policies on a problem"),
        "replay": Command("simulate", "try policies on a recorded table"),
        "reproduce": Command("simulate", "every figure and table of the paper"),
        "policies": Command("simulate", "list the policies and their parameters"),
        "completion": Command("completion", "complete commands with the Tab key, in bash, zsh and fish"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
INTRODUCTION = """\
Tasks of several kinds arrive. Each can be done in several ways, its options; an option earns a reward and has a cost.
Worthwhile learns which options earn the most total reward per total cost.
"""
EXAMPLES = """\
examples:
  worthwhile decide tasks.db weather 1 5 10    an option for a task of the kind weather, and the task's id
  worthwhile report tasks.db 1 --reward 0.9 --cost 3.2
  worthwhile status tasks.db                   what it has learned
  worthwhile serve --store tasks.db            the same over HTTP, with a dashboard
  worthwhile work jobs:train --store x.db      call your function for every task, and report what it did

without tasks of your own:
  worthwhile train                             small networks, on data that comes with scikit-learn
  worthwhile solve seven-kinds                 the best possible ratio, when everything is known
  worthwhile simulate seven-kinds              how close to it policies get that must learn
  worthwhile replay measurements.parquet       the same on a table of recorded rewards and costs
  worthwhile reproduce --quick                 every result of the paper, in a report
"""


def overview() -> str:
    """What `worthwhile --help` says."""
    width = max(map(len, COMMANDS))
    groups = (
        "\n".join([f"{title}:", *(f"  {name:<{width}}  {command.help}" for name, command in group.items())])
        for title, group in GROUPS.items()
    )
    head = "usage: worthwhile COMMAND …    (--help after a command says more of it)"
    return "\n\n".join([head, INTRODUCTION.strip(), *groups, EXAMPLES.strip()])
