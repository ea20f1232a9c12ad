"""Problems by name, and from the TOML files that people write by hand (docs/problems.md shows one)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worthwhile.errors import BadParameter, BadProblem, did_you_mean
from worthwhile.goals.goal import Goal, goal_of
from worthwhile.problem import Noise, Problem, seven_kinds, two_kinds

GOAL = ("goal", "floor", "budget")
PRESETS = {"two-kinds-0.8": two_kinds, "two-kinds-0.6": lambda: two_kinds(0.6), "seven-kinds": seven_kinds}


def read_problem(source: str | Path) -> Problem:
    """A preset by name, or a problem from a TOML file."""
    if str(source) in PRESETS:
        return PRESETS[str(source)]()
    if str(source).startswith("two-kinds-") and not Path(source).is_file():
        return two_kinds(share_in(str(source)))
    import tomllib

    try:
        with open(source, "rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        hint = did_you_mean(str(source), PRESETS)
        raise BadProblem(f"no problem file {str(source)!r}, and no preset of that name; {hint}") from None
    except (OSError, ValueError, RecursionError) as error:  # bad UTF-8, bad TOML, numbers of 5 000 digits
        raise BadProblem(f"{source}: {error}") from None
    try:
        return from_toml(content, Path(source).stem)
    except BadProblem as error:
        raise BadProblem(f"{source}: {error}") from None


def share_in(name: str) -> float:
    """The p of `two-kinds-p`."""
    text = name.removeprefix("two-kinds-")
    try:
        return number(name, "p", float(text))
    except ValueError:
        raise BadProblem(f"{name}: p = {text!r}; it must be a finite number") from None


def from_toml(content: Mapping[str, Any], name: str) -> Problem:
    """A problem from the parsed content of a TOML file."""
    only(content, "the file", {"name", "kind", "units", "noise", *GOAL})
    kinds: dict[str, tuple[float, dict[str, tuple[float, ...]]]] = {}
    entries = content.get("kind", [])
    if not isinstance(entries, list) or not entries:
        raise BadProblem("no [[kind]] table; a problem needs at least one")
    for index, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            raise BadProblem(f"kind {index} is {entry!r}; it must be a table")
        kind = str(entry.get("name", f"kind {index}"))
        where = f"kind {kind!r}"
        for key in GOAL:
            if key in entry:  # as TOML reads what stands below the first [[kind]]
                raise BadProblem(f"{where} has a {key}; it is the whole file's, so write it above the first [[kind]]")
        only(entry, where, {"name", "arrival", "options"})
        if kind in kinds:
            raise BadProblem(f"{where} appears twice; names must differ")
        if "arrival" not in entry:
            raise BadProblem(f"{where} has no arrival; give the share of tasks that are of this kind")
        options = entry.get("options", {})
        if not isinstance(options, dict) or not options:
            raise BadProblem(f"{where} has no options; give at least one: name = {{ reward = 1.0, cost = 2.0 }}")
        kinds[kind] = (
            number(where, "arrival", entry["arrival"]),
            {option: numbers(f"{where}, option {option!r}", value) for option, value in options.items()},
        )
    units, noise = content.get("units", {}), content.get("noise", {})
    only(units, "[units]", {"reward", "cost"})
    only(noise, "[noise]", {"reward", "cost", "correlation"})
    return Problem.of(
        kinds,
        name=str(content.get("name", name)),
        reward_noise=noise_from(noise.get("reward", {}), "reward"),
        cost_noise=noise_from(noise.get("cost", {}), "cost"),
        correlation=number("[noise]", "correlation", noise.get("correlation", 0.0)),
        reward_unit=str(units.get("reward", "")),
        cost_unit=str(units.get("cost", "")),
        goal=goal_from(content),
    )


def goal_from(content: Mapping[str, Any]) -> Goal:
    """What a file says of goal, floor and budget."""
    try:
        return goal_of(*(content.get(name) for name in GOAL))
    except BadParameter as error:
        raise BadProblem(str(error)) from None


def noise_from(content: Mapping[str, Any], quantity: str) -> Noise:
    """The [noise] entry of the reward or the cost."""
    where = f"[noise] {quantity}"
    only(content, where, {"family", "sd", "cv"})
    sizes = {name: number(where, name, content[name]) for name in ("sd", "cv") if name in content}
    return Noise(str(content.get("family", "gaussian")), **sizes)


def only(content: Any, where: str, allowed: set[str]) -> None:
    """Refuse a key that would be ignored: most often it is misspelt."""
    if not isinstance(content, Mapping):
        raise BadProblem(f"{where} is {content!r}; it must be a table")
    for key in content:
        if key not in allowed:
            raise BadProblem(f"{where} has an unknown key {key!r}; {did_you_mean(key, allowed)}")


def numbers(where: str, content: Any) -> tuple[float, ...]:
    """{ reward = …, cost = … }, and failure_rate = … if it sometimes fails, at failure_cost = … or the same cost."""
    only(content, where, {"reward", "cost", "failure_rate", "failure_cost"})
    for name in ("reward", "cost"):
        if name not in content:
            raise BadProblem(f"{where} has no {name}; an option needs both a mean reward and a mean cost")
    if "failure_cost" in content and "failure_rate" not in content:
        raise BadProblem(f"{where} has a failure_cost, but no failure_rate; give both")
    rest = (content.get("failure_rate", 0.0), content.get("failure_cost", content["cost"]))
    given = zip(
        ("reward", "cost", "failure_rate", "failure_cost"), (content["reward"], content["cost"], *rest), strict=True
    )
    return tuple(number(where, name, value) for name, value in given)


def number(where: str, name: str, value: Any) -> float:
    """A finite number."""
    try:
        if isinstance(value, bool | str) or not math.isfinite(value):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise BadProblem(f"{where}: {name} = {value!r}; it must be a finite number") from None
    return float(value)
