"""A problem: kinds of tasks, how often each arrives, and what every option of a kind brings and costs on average."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadProblem, did_you_mean
from worthwhile.state import Floats

LARGEST, SMALLEST = 1e100, 1e-100  # of a mean

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

    def __post_init__(self) -> None:
        check(self)

    @property
    def offered(self) -> npt.NDArray[np.bool_]:
        """(kinds, options): which options a kind has."""
        return np.isfinite(self.reward)

    @property
    def ratio_unit(self) -> str:
        """The unit of reward/cost, empty if neither has one."""
        return f"{self.reward_unit or '1'}/{self.cost_unit or '1'}" if self.reward_unit or self.cost_unit else ""

    @classmethod
    def of(
        cls,
        kinds: Mapping[str, tuple[float, Mapping[str, tuple[float, float]]]],
        name: str = "problem",
        **settings: Any,
    ) -> Problem:
        """From {kind: (arrival, {option: (mean reward, mean cost)})}.

        >>> Problem.of({"x": (0.8, {"I": (3, 1)}), "y": (0.2, {"III": (3, 2), "II": (1, 1)})}).options
        ('I', 'III', 'II')
        """
        check_shape(kinds)
        options = tuple(dict.fromkeys(option for _, row in kinds.values() for option in row))
        column = {option: position for position, option in enumerate(options)}
        reward, cost = np.full((2, len(kinds), len(options)), np.nan)
        for row, (_, offered) in enumerate(kinds.values()):
            for option, (r, c) in offered.items():
                reward[row, column[option]], cost[row, column[option]] = r, c
        for kind, (_, offered) in kinds.items():
            for option, (r, c) in offered.items():
                if not (math.isfinite(r) and math.isfinite(c)):
                    raise BadProblem(f"kind {kind!r}, option {option!r}: reward {r}, cost {c}; both must be finite")
        arrival = np.array([share for share, _ in kinds.values()], dtype=float)
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
        return replace(self, cost=self.cost + added)


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
    bad = offered & ~(problem.cost > 0.0)
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        where = f"kind {problem.kinds[row]!r}, option {problem.options[column]!r}"
        raise BadProblem(
            f"{where}: mean cost {problem.cost[row, column]:g}; it must be above 0, or reward per cost means nothing"
        )
    check_size(problem, "reward", problem.reward, 0.0)
    check_size(problem, "cost", problem.cost, SMALLEST)
    if not -1.0 <= problem.correlation <= 1.0:
        raise BadProblem(f"correlation = {problem.correlation}; it must be from −1 to 1")
    check_noise("reward", problem.reward_noise, problem.reward[offered])
    check_noise("cost", problem.cost_noise, problem.cost[offered])


def check_shape(kinds: Any) -> None:
    """Refuse what `Problem.of` cannot read."""
    try:
        for share, offered in kinds.values():
            float(share)
            for reward, cost in offered.values():
                float(reward), float(cost)
    except (AttributeError, TypeError, ValueError) as error:
        shape = "{kind: (arrival, {option: (mean reward, mean cost)})}"
        raise BadProblem(f"{str(kinds)[:100]}: {error}; write {shape}") from None


def check_size(problem: Problem, quantity: str, means: Floats, least: float) -> None:
    """Refuse means whose squares or quotients would leave the range of numbers."""
    bad = problem.offered & ~((np.abs(means) <= LARGEST) & (np.abs(means) >= least))
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        where = f"kind {problem.kinds[row]!r}, option {problem.options[column]!r}"
        limits = f"at most {LARGEST:g}" + (f" and at least {least:g}" if least else "")
        raise BadProblem(f"{where}: mean {quantity} {means[row, column]:g}; it must be {limits}: use another unit")


def check_noise(quantity: str, noise: Noise, means: Floats) -> None:
    """Refuse means that a noise family cannot have."""
    low, high = float(means.min()), float(means.max())
    if noise.family in ("bernoulli", "generalised-bernoulli", "beta") and (low < 0.0 or high > 1.0):
        raise BadProblem(f"{noise.family} {quantity}s need means from 0 to 1; they go from {low:g} to {high:g}")
    if noise.family in ("gamma", "lognormal") and low <= 0.0:
        raise BadProblem(f"{noise.family} {quantity}s need means above 0; the smallest is {low:g}")
    if noise.family == "beta":
        deviation = noise.deviation(means)
        if (deviation**2 >= means * (1.0 - means)).any():
            raise BadProblem(
                f"beta {quantity}s: sd {deviation.max():g} is too large for means from {low:g} to {high:g}"
            )


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


PRESETS = {"two-kinds-0.8": two_kinds, "two-kinds-0.6": lambda: two_kinds(0.6), "seven-kinds": seven_kinds}


def read_problem(source: str | Path) -> Problem:
    """A preset by name, or a problem from a TOML file (docs/problems.md shows one)."""
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
    only(content, "the file", {"name", "kind", "units", "noise"})
    kinds: dict[str, tuple[float, dict[str, tuple[float, float]]]] = {}
    entries = content.get("kind", [])
    if not isinstance(entries, list) or not entries:
        raise BadProblem("no [[kind]] table; a problem needs at least one")
    for index, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            raise BadProblem(f"kind {index} is {entry!r}; it must be a table")
        kind = str(entry.get("name", f"kind {index}"))
        where = f"kind {kind!r}"
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
            {option: pair(f"{where}, option {option!r}", value) for option, value in options.items()},
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
    )


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


def pair(where: str, content: Any) -> tuple[float, float]:
    """{ reward = …, cost = … }."""
    only(content, where, {"reward", "cost"})
    for name in ("reward", "cost"):
        if name not in content:
            raise BadProblem(f"{where} has no {name}; an option needs both a mean reward and a mean cost")
    return number(where, "reward", content["reward"]), number(where, "cost", content["cost"])


def number(where: str, name: str, value: Any) -> float:
    """A finite number."""
    try:
        if isinstance(value, bool | str) or not math.isfinite(value):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise BadProblem(f"{where}: {name} = {value!r}; it must be a finite number") from None
    return float(value)
