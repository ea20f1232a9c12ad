"""Write the pages of docs/reference from the code: Python, commands, HTTP, settings, metrics (`make reference`)."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reference_api import api
from reference_text import page, table
from worthwhile.cli.main import parser
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.settings import Settings
from worthwhile.live.trials import TrialSettings
from worthwhile.service.metrics import Metrics
from worthwhile.service.openapi import description
from worthwhile.service.routes import ENDPOINTS

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


# --- commands ---


def commands(command: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Its own commands, by name."""
    chosen = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(chosen[0].choices) if chosen else {}


def helps(command: argparse.ArgumentParser) -> dict[str, str]:
    chosen = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    return {each.dest: each.help or "" for each in chosen[0]._choices_actions} if chosen else {}


def arguments(command: argparse.ArgumentParser) -> str:
    rows = []
    for action in command._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)) or action.help == argparse.SUPPRESS:
            continue
        value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        value = " ".join(value) if isinstance(value, tuple) else str(value)
        named = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{value or action.dest}`"
        rows.append(
            [f"{named} {value}" if action.option_strings and value and action.nargs != 0 else named, meaning(action)]
        )
    return table(["argument", "is"], rows) if rows else ""


def meaning(action: argparse.Action) -> str:
    chosen = ", ".join(map(str, action.choices)) if action.choices else ""
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return "; ".join(part for part in (text, f"one of {chosen}" if chosen else "") if part)


def described(name: str, command: argparse.ArgumentParser, brief: str) -> Iterator[str]:
    parts = [f"## worthwhile {name}", (brief[:1].upper() + brief[1:] + ".") if brief else "", arguments(command)]
    if command.epilog:
        parts.append(f"```text\n{command.epilog.strip()}\n```")
    yield "\n\n".join(part for part in parts if part)
    for inner, inside in commands(command).items():
        yield from described(f"{name} {inner}", inside, helps(command).get(inner, ""))


def cli() -> str:
    top = parser()
    brief = helps(top)
    parts = [part for name, command in commands(top).items() for part in described(name, command, brief.get(name, ""))]
    about = (
        "Every command and its options, as `worthwhile COMMAND --help` has them. Exit codes: 0 done, 1 something\n"
        "failed, 2 bad input, 130 interrupted."
    )
    return page("Commands", about, *parts)


# --- HTTP ---


def json_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(json_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{each!r}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {json_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def message(name: str, schema: dict[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        [
            f"`{field}`",
            json_type(each),
            "yes" if field in needed else f"no ({each['default']!r})" if "default" in each else "no",
        ]
        for field, each in schema.get("properties", {}).items()
    ]
    shown = table(["field", "type", "needed"], rows) if rows else "No fields."
    return "\n\n".join(part for part in (f"### {name}", schema.get("description", ""), shown) if part)


def http() -> str:
    spec = description(ENDPOINTS)
    rows = []
    for endpoint in ENDPOINTS:
        sent = endpoint.body or endpoint.query
        asked = f"[{sent.__name__}](#{sent.__name__.lower()})" if sent else ""
        rows.append([f"`{endpoint.method} {endpoint.path}`", endpoint.summary, endpoint.scope, asked])
    refusals = [
        [f"`{status}`", each["description"]]
        for status, each in next(iter(next(iter(spec["paths"].values())).values()))["responses"].items()
    ]
    about = (
        "Every address of `worthwhile serve`. [The service](../service.md) explains them; a running one describes\n"
        "itself at `/v1/openapi.json` (OpenAPI 3.1), and `/docs` lets you try it."
    )
    messages = [message(name, schema) for name, schema in sorted(spec["components"]["schemas"].items())]
    return page(
        "HTTP", about, "## Addresses", table(["request", "does", "scope", "is told"], rows),
        "## Answers", table(["status", "means"], refusals), "## Messages", *messages,
    )  # fmt: skip


# --- settings, metrics ---

MEANINGS = {  # of what a scheduler is told; a test asks for each
    "url": "the store: a SQLite file, `sqlite:///tasks.db` or `postgresql://user@host/database`; nothing: in memory",
    "name": "of the scheduler; a store holds several",
    "policy": "how options are chosen, as `name,parameter=value`; nothing: the default",
    "overhead": "what every task costs beyond what is reported, whatever its option: set-up, review",
    "failed_reward": "makes a failure a result with this reward",
    "store_reasons": "whether the reasons of failures are stored",
    "goal": "`ratio`, `cost` or `reward`; a floor or a budget alone says it",
    "floor": "the mean reward to keep, of all tasks or by kind",
    "budget": "the mean cost not to exceed",
    "baseline": "the option that tasks take today, for all kinds or by kind: what the gain is measured against",
    "holdout": "the share of the tasks that take the baseline",
    "explore": "the share of the other tasks that take any option, at random",
    "guard": "how far reward per cost may be below the baseline's, as a share of it",
    "guard_error": "with what probability it may be further below",
    "reward_unit": "what rewards are counted in, shown beside the numbers",
    "cost_unit": "what costs are counted in",
    "units": "what rewards and costs are counted in",
    "lease": "seconds for which a task counts as running, unless `decide` says otherwise",
    "seed": "where random draws begin",
    "engine": "`python`, or `compiled` for machine code (extra `fast`); the decisions are the same",
    "create": "whether to make the scheduler if there is none",
    "history": "a file of what was recorded elsewhere, learned from first, once",
    "history_columns": "what that file calls its columns",
}


def source_comments(kind: type) -> dict[str, str]:
    """What stands behind every field in the source."""
    return dict(re.findall(r"^    (\w+): [^#\n]*(?:#\s*(.*))?$", inspect.getsource(kind), re.M))


def setting_rows(kind: Any) -> list[list[str]]:
    said = source_comments(kind)
    return [
        [f"`{name}`", f"`{kind._field_defaults.get(name, '')!r}`", said.get(name) or MEANINGS.get(name, "")]
        for name in kind._fields
    ]


def settings() -> str:
    parameters = inspect.signature(Scheduler).parameters.values()
    changeable = inspect.signature(Scheduler.change).parameters
    told = [
        [f"`{one.name}`", f"`{one.default!r}`", MEANINGS.get(one.name, ""), "yes" if one.name in changeable else "no"]
        for one in parameters
    ]
    about = (
        "What a scheduler is told when it is made, with `Scheduler(…)` or `PUT /v1/schedulers/NAME`, and later, with\n"
        "`change`. [Decide and report](../live.md#names-and-settings) explains them."
    )
    return page(
        "Settings", about, "## Said when it is made", table(["argument", "default", "is", "can be changed"], told),
        "## Stored with the scheduler", table(["setting", "default", "is"], setting_rows(Settings)),
        "## Stored for the proof", table(["setting", "default", "is"], setting_rows(TrialSettings)),
    )  # fmt: skip


def metrics() -> str:
    counts = Metrics()
    counts.add("GET", "/", 200, 0.1)
    with Scheduler() as scheduler:
        text = counts.text([scheduler.summary()])
    said = dict(re.findall(r"^# HELP (\w+) (.*)$", text, re.M))
    rows = [[f"`{name}`", kind, said.get(name, "")] for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M)]
    head = ["metric", "type", "is"] if said else ["metric", "type"]
    about = (
        "What `/metrics` tells Prometheus. [Watch it](../operate.md#watch-it) says what to look at;\n"
        "[the glossary](../glossary.md) has the words."
    )
    return page("Metrics", about, table(head, [row[: len(head)] for row in rows]))


PAGES: dict[str, Callable[[], str]] = {"api": api, "cli": cli, "http": http, "settings": settings, "metrics": metrics}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / f"{name}.md").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
