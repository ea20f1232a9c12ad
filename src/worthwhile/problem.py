"""A problem: kinds of tasks, how often each arrives, and what every option of a kind brings and costs on average."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadParameter, BadProblem, did_you_mean
from worthwhile.formatting import quotient_unit
from worthwhile.goals.goal import Goal
from worthwhile.state import LARGEST, SMALLEST, Floats

FAMILIES = ("gaussian", "bernoulli", "beta", "gamma", "lognormal", "generalised-bernoulli")
TOSSES = 4  # a generalised Bernoulli observation is the share of wins in so many


@dataclass(frozen=True)
class Noise:
    """How observations scatter around their mean: a family and its standard deviation, absolute or relative (cv)."""

    family: str = "gaussian"
    sd: float | None = None
    cv: float | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise BadProblem(f"noise family {self.family!r}: {did_you_mean(self.family, FAMILIES)}")
        if self.sd is not None and self.cv is not None:
            raise BadProblem(f"noise has both sd = {self.sd} and cv = {self.cv}; give one of them")
        for name, value in (("sd", self.sd), ("cv", self.cv)):
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                raise BadProblem(f"noise {name} = {value}; it must be a finite number, 0 or more")
        if self.family in ("beta", "gamma", "lognormal") and not (self.sd or self.cv):
            raise BadProblem(f"{self.family} noise needs a positive sd or cv")

    def deviation(self, mean: Floats) -> Floats:
        """The standard deviation at each mean."""
        if self.family in ("bernoulli", "generalised-bernoulli"):
            tosses = 1 if self.family == "bernoulli" else TOSSES
            return np.sqrt(np.maximum(mean * (1.0 - mean), 0.0) / tosses)
        if self.cv is not None:
            return np.abs(mean) * self.cv
        return np.full(mean.shape, 1.0 if self.sd is None else self.sd)


@dataclass(frozen=True, eq=False)
class Problem:
    """Arrivals p, mean rewards r and mean costs c; NaN where a kind does not offer an option."""

    name: str
    kinds: tuple[str, ...]
    options: tuple[str, ...]
    arrival: Floats  # (kinds,)
    reward: Floats  # (kinds, options)
    cost: Floats  # (kinds, options)
    reward_noise: Noise = field(default_factory=Noise)
    cost_noise: Noise = field(default_factory=Noise)
    correlation: float = 0.0
    reward_unit: str = ""
    cost_unit: str = ""
    failure_rate: Floats | None = None  # (kinds, options) f; None where nothing ever fails
    failure_cost: Floats | None = None  # (kinds, options) c_f: mean cost of a task that fails
    goal: Goal = field(default_factory=Goal)  # what `solve` is to aim at, unless it is told otherwise

    def __post_init__(self) -> None:
        check(self)

    @property
    def offered(self) -> npt.NDArray[np.bool_]:
        """(kinds, options): which options a kind has."""
        return np.isfinite(self.reward)

    @property
    def can_fail(self) -> bool:
        return self.failure_rate is not None

    @property
    def failures(self) -> tuple[Floats, Floats]:
        """Failure rates and costs, 0 where nothing is said of them."""
        none = np.zeros(self.reward.shape)
        rate, cost = (none if part is None else np.nan_to_num(part) for part in (self.failure_rate, self.failure_cost))
        return rate, cost

    @property
    def completing(self) -> npt.NDArray[np.bool_]:
        """(kinds, options): which options a kind has that do not always fail."""
        return self.offered & (self.failures[0] < 1.0)

    @property
    def cost_per_completion(self) -> Floats:
        """c + c_f·f/(1 − f): tasks that fail are paid for until one is completed; infinite if all fail."""
        rate, cost = self.failures
        with np.errstate(divide="ignore"):
            return self.cost + np.where(rate > 0.0, cost * rate / (1.0 - rate), 0.0)

    @property
    def means_per_attempt(self) -> tuple[Floats, Floats]:
        """Mean reward and cost of a task, failed or not; a failure brings 0."""
        rate, cost = self.failures
        return (1.0 - rate) * self.reward, (1.0 - rate) * self.cost + rate * cost

    @property
    def ratio_unit(self) -> str:
        """The unit of reward/cost, empty if neither has one."""
        return quotient_unit(self.reward_unit, self.cost_unit)

    @classmethod
    def of(
        cls,
        kinds: Mapping[str, tuple[float, Mapping[str, tuple[float, ...]]]],
        name: str = "problem",
        **settings: Any,
    ) -> Problem:
        """From {kind: (arrival, {option: (mean reward, mean cost)})}; of options that fail (…, rate, mean cost of it).

        >>> Problem.of({"x": (0.8, {"I": (3, 1)}), "y": (0.2, {"III": (3, 2), "II": (1, 1)})}).options
        ('I', 'III', 'II')
        """
        check_shape(kinds)
        options = tuple(dict.fromkeys(option for _, row in kinds.values() for option in row))
        column = {option: position for position, option in enumerate(options)}
        reward, cost, rate, failure_cost = np.full((4, len(kinds), len(options)), np.nan)
        for row, (kind, (_, offered)) in enumerate(kinds.items()):
            for option, (r, c, *failing) in offered.items():
                if not (math.isfinite(r) and math.isfinite(c)):
                    raise BadProblem(f"kind {kind!r}, option {option!r}: reward {r}, cost {c}; both must be finite")
                reward[row, column[option]], cost[row, column[option]] = r, c
                rate[row, column[option]], failure_cost[row, column[option]] = failing or (0.0, c)
        arrival = np.array([share for share, _ in kinds.values()], dtype=float)
        if np.nansum(np.abs(rate)) > 0.0:
            settings |= {"failure_rate": rate, "failure_cost": failure_cost}
        return cls(name, tuple(kinds), options, arrival, reward, cost, **settings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs, equal_nan=True) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        )

    __hash__ = None  # type: ignore[assignment]

    def with_added_cost(self, added: float) -> Problem:
        """The same problem where every task costs so much more, whatever option it takes."""
        failure_cost = None if self.failure_cost is None else self.failure_cost + added
        return replace(self, cost=self.cost + added, failure_cost=failure_cost)


def check(problem: Problem) -> None:
    """Refuse what makes no sense, naming the kind, the option and the value."""
    if not problem.kinds:
        raise BadProblem(f"{problem.name}: no kinds; a problem needs at least one")
    for word, names in (("kind", problem.kinds), ("option", problem.options)):
        if "" in names:
            raise BadProblem(f"{problem.name}: {word} {names.index('') + 1} has an empty name; give it one")
    for kind, share in zip(problem.kinds, problem.arrival.tolist(), strict=True):
        if not (math.isfinite(share) and 0.0 <= share <= 1.0):
            raise BadProblem(f"kind {kind!r}: arrival = {share}; it is a probability, from 0 to 1")
    total = float(problem.arrival.sum())
    if abs(total - 1.0) > 1e-6:
        raise BadProblem(f"{problem.name}: the kinds' arrivals add up to {total:.6g}; they must add up to 1")
    offered = problem.offered
    if not offered.any(axis=1).all():
        kind = problem.kinds[int(np.argmin(offered.any(axis=1)))]
        raise BadProblem(f"kind {kind!r} has no options; it needs at least one")
    reward, cost = problem.reward, problem.cost
    check_means(problem, "cost", cost > 0.0, "it must be above 0, or reward per cost means nothing")
    most = f"it must be at most {LARGEST:g}"  # or squares and quotients would leave the range of numbers
    check_means(problem, "reward", np.abs(reward) <= LARGEST, f"{most}: use another unit")
    within = (cost >= SMALLEST) & (cost <= LARGEST)
    check_means(problem, "cost", within, f"{most} and at least {SMALLEST:g}: use another unit")
    if not -1.0 <= problem.correlation <= 1.0:
        raise BadProblem(f"correlation = {problem.correlation}; it must be from −1 to 1")
    check_goal(problem)
    if problem.can_fail or problem.failure_cost is not None:
        check_failures(problem)
    check_noise("reward", problem.reward_noise, reward[offered])
    check_noise("cost", problem.cost_noise, cost[offered])


def check_goal(problem: Problem) -> None:
    """Refuse a goal with floors for kinds that there are not."""
    if not isinstance(problem.goal, Goal):
        raise BadProblem(f"{problem.name}: goal = {problem.goal!r}; it is a Goal, for instance Goal('cost', floor=0.8)")
    try:
        problem.goal.check_kinds(problem.kinds)
    except BadParameter as error:
        raise BadProblem(str(error)) from None


def check_failures(problem: Problem) -> None:
    """Refuse failure rates and costs that make no sense."""
    if problem.failure_rate is None or problem.failure_cost is None:
        raise BadProblem(f"{problem.name}: failure_rate and failure_cost belong together; give both or neither")
    rate, cost = problem.failure_rate, problem.failure_cost
    check_means(problem, "failure rate", (rate >= 0.0) & (rate <= 1.0), "it is a probability, from 0 to 1")
    least = (cost >= SMALLEST) & (cost <= LARGEST)
    check_means(problem, "failure cost", least, f"it must be above 0, at least {SMALLEST:g} and at most {LARGEST:g}")
    hopeless = ~problem.completing.any(axis=1)
    if hopeless.any():
        kind = problem.kinds[int(np.argmax(hopeless))]
        raise BadProblem(f"kind {kind!r}: every option always fails; it needs one that does not")


def check_shape(kinds: Any) -> None:
    """Refuse what `Problem.of` cannot read."""
    try:
        for share, offered in kinds.values():
            float(share)
            for numbers in offered.values():
                if len([float(number) for number in numbers]) not in (2, 4):
                    raise ValueError(f"{numbers}: 2 numbers, or 4 of an option that fails")
    except (AttributeError, TypeError, ValueError) as error:
        shape = "{kind: (arrival, {option: (mean reward, mean cost)})}"
        raise BadProblem(f"{str(kinds)[:100]}: {error}; write {shape}") from None


def check_means(problem: Problem, quantity: str, good: npt.NDArray[np.bool_], rule: str) -> None:
    """Refuse the first number of an option on offer that breaks a rule."""
    bad = problem.offered & ~good
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        number = getattr(problem, quantity.replace(" ", "_"))[row, column]
        where = f"kind {problem.kinds[row]!r}, option {problem.options[column]!r}"
        raise BadProblem(f"{where}: {quantity if 'rate' in quantity else 'mean ' + quantity} {number:g}; {rule}")


def check_noise(quantity: str, noise: Noise, means: Floats) -> None:
    """Refuse means that a noise family cannot have."""
    low, high = float(means.min()), float(means.max())
    if noise.family in ("bernoulli", "generalised-bernoulli", "beta") and (low < 0.0 or high > 1.0):
        raise BadProblem(f"{noise.family} {quantity}s need means from 0 to 1; they go from {low:g} to {high:g}")
    if noise.family in ("gamma", "lognormal") and low <= 0.0:
        raise BadProblem(f"{noise.family} {quantity}s need means above 0; the smallest is {low:g}")
    if noise.family == "beta":
        sd = noise.deviation(means)
        if (sd**2 >= means * (1.0 - means)).any():
            raise BadProblem(f"beta {quantity}s: sd {sd.max():g} is too large for means from {low:g} to {high:g}")


def two_kinds(p: float = 0.8) -> Problem:
    """The paper's two kinds: the toy example with arrivals {p, 1−p} and N(0, 1) noise."""
    return Problem.of(
        {"x": (p, {"a1": (3.0, 1.0)}), "y": (1.0 - p, {"a1": (3.0, 2.0), "a2": (1.0, 1.0)})}, name=f"two-kinds-{p:g}"
    )


def seven_kinds() -> Problem:
    """The paper's seven kinds with N(0, 1) noise."""
    arrivals = (0.3, 0.1, 0.2, 0.1, 0.05, 0.1, 0.15)
    offers: tuple[Sequence[tuple[float, float]], ...] = (
        [(3, 1)],
        [(3, 2), (1, 1)],
        [(2, 1)],
        [(2.5, 1.5)],
        [(2, 1), (1, 1)],
        [(3, 2), (1.5, 1.5)],
        [(2.5, 1)],
    )
    kinds = {
        f"s{number}": (arrival, {f"a{option}": pair for option, pair in enumerate(offer, 1)})
        for number, (arrival, offer) in enumerate(zip(arrivals, offers, strict=True), 1)
    }
    return Problem.of(kinds, name="seven-kinds")
