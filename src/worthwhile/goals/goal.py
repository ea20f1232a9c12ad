"""A goal: what the best choice is best at (the ratio, the cost, the reward), and the floor and budget it must keep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Real
from typing import Any

from worthwhile.errors import BadParameter, did_you_mean
from worthwhile.formatting import printable

AIMS = {"ratio": "best ratio", "cost": "least cost", "reward": "most reward"}
MOST_NAMED = 3  # kinds in one sentence

Floor = float | Mapping[str, float]


@dataclass(frozen=True)
class Goal:
    """What to aim at, the mean reward per task not to fall below, and the mean cost per task not to exceed."""

    goal: str = "ratio"  # or "cost", as little of it as possible, or "reward", as much of it as possible
    floor: Floor | None = None  # of all tasks together, or {kind: floor}
    budget: float | None = None  # with the cost that every task has whatever its option

    def __post_init__(self) -> None:
        if not isinstance(self.goal, str) or self.goal not in AIMS:
            said = written(self.goal)
            raise BadParameter(f"goal = {said}; {did_you_mean(said, AIMS)}")
        if self.floor is not None:
            object.__setattr__(self, "floor", checked_floor(self.floor))
        if self.budget is not None:
            object.__setattr__(self, "budget", checked_budget(self.budget))
        if self.goal == "cost" and self.floor is None:
            raise BadParameter("goal = 'cost' needs a floor, or the cheapest option would always do; say floor=0.8")
        if self.goal == "reward" and self.budget is None:
            raise BadParameter("goal = 'reward' needs a budget, or the best option would always do; say budget=0.05")

    @property
    def constrained(self) -> bool:
        """Whether there is anything to keep beside the aim."""
        return self.floor is not None or self.budget is not None

    @property
    def floors(self) -> dict[str, float]:
        """The floors of single kinds; empty where one floor is for all tasks together."""
        return dict(self.floor) if isinstance(self.floor, Mapping) else {}

    @property
    def total_floor(self) -> float | None:
        """The floor of all tasks together."""
        return None if isinstance(self.floor, Mapping) else self.floor

    def check_kinds(self, kinds: Iterable[str]) -> None:
        """Refuse a floor for a kind that there is not."""
        known = dict.fromkeys(kinds)
        for kind in self.floors:
            if kind not in known:
                raise BadParameter(f"floor of {kind!r}: there is no kind of that name; {did_you_mean(kind, known)}")

    def words(self, reward_unit: str = "", cost_unit: str = "") -> str:
        """The goal as one would say it.

        >>> goal_of(floor=0.8).words()
        'least cost with mean reward ≥ 0.8'
        """
        kept = []
        if self.total_floor is not None:
            kept.append(f"mean reward ≥ {quantity(self.total_floor, reward_unit)}")
        if self.floors:
            kept.append(f"mean reward of {self.floor_words(reward_unit)}")
        if self.budget is not None:
            kept.append(f"mean cost per task ≤ {quantity(self.budget, cost_unit)}")
        return f"{AIMS[self.goal]} with {' and '.join(kept)}" if kept else AIMS[self.goal]

    def floor_words(self, unit: str = "") -> str:
        """The floors of single kinds, the first few of them by name."""
        named = [f"{printable(kind)} ≥ {quantity(floor, unit)}" for kind, floor in self.floors.items()]
        more = [f"{len(named) - MOST_NAMED} more kinds"] if len(named) > MOST_NAMED else []
        *first, last = named[:MOST_NAMED] + more
        return f"{', '.join(first)} and {last}" if first else last

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it; `from_json` is the way back."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> Goal:
        """A goal from {"goal": …, "floor": …, "budget": …}; what is missing or null was not said."""
        if not isinstance(content, Mapping):
            raise BadParameter(f"goal = {written(content)}; write {{goal, floor, budget}}, each of them if needed")
        names = [field.name for field in fields(cls)]
        for name in content:
            if name not in names:
                raise BadParameter(f"a goal has no {written(name)}; {did_you_mean(written(name), names)}")
        return goal_of(**content)


def goal_of(goal: str | Goal | None = None, floor: Any = None, budget: Any = None) -> Goal:
    """What somebody said, checked and completed: a floor alone means the least cost, a budget alone the most reward.

    >>> goal_of(budget=0.05)
    Goal(goal='reward', floor=None, budget=0.05)
    """
    if isinstance(goal, Goal):
        if floor is not None or budget is not None:
            raise BadParameter(f"goal = {goal!r} has its floor and budget in it; do not give them again")
        return goal
    if goal is None and floor is not None and budget is not None:
        aims = " or ".join(map(repr, AIMS))
        raise BadParameter(f"floor = {written(floor)} and budget = {written(budget)} need a goal beside them: {aims}")
    implied = "cost" if floor is not None else "reward" if budget is not None else "ratio"
    return Goal(implied if goal is None else goal, floor, budget)


def quantity(value: float, unit: str) -> str:
    """A number as short as a person would write it, with its unit."""
    return f"{value:g} {unit}".rstrip()


def checked_floor(floor: Any) -> Floor:
    """A floor for all tasks, or one for each of several kinds."""
    if not isinstance(floor, Mapping):
        return finite("floor", floor, "a finite number, or {kind: number}")
    if not floor:
        raise BadParameter("floor = {}; name at least one kind, or leave the floor out")
    for kind in floor:
        if not isinstance(kind, str) or not kind:
            raise BadParameter(f"floor of {written(kind)}: a kind is a text that is not empty")
    return {kind: finite(f"floor of {written(kind)}", value, "a finite number") for kind, value in floor.items()}


def checked_budget(budget: Any) -> float:
    """A budget that something can be bought for."""
    number = finite("budget", budget, "a finite number above 0, the mean cost per task")
    if number <= 0.0:
        raise BadParameter(f"budget = {number:g}; it must be above 0: every task costs something")
    return number


def finite(name: str, value: Any, meant: str) -> float:
    """A finite number."""
    try:
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise BadParameter(f"{name} = {written(value)}; it must be {meant}") from None


def written(value: Any) -> str:
    """A value as Python writes it, as far as a message has room for it."""
    try:
        return repr(value)[:100]
    except ValueError:
        return "a number of thousands of digits"
