"""How a goal is kept along the way, and what that costs: the default's course, and its rivals'."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from entrants import scale_of
from goal_rivals import SETTINGS, FixedPrice, GoalByBounds, Match, play_all, tasks_of_run
from goal_worlds import Case
from worthwhile import simulate
from worthwhile.goals.frontier import frontier_of
from worthwhile.policies.base import Policy
from worthwhile.policies.goal_imed import COST, REWARD
from worthwhile.policies.registry import DEFAULT
from worthwhile.simulation.loop import TOTALS, Block
from worthwhile.simulation.progress import Progress
from worthwhile.simulation.runs import NO_DELAY, Delay, Job, Sweep, stages_of
from worthwhile.state import Floats

OURS, BOUNDS, FIXED, PARETO = DEFAULT, "ω*-UCB's bounds", "fixed price", "paretobandit"
EARLY, TASKS, WINDOW = 10_000, 100_000, 2_000
MARKS = range(WINDOW, TASKS + 1, WINDOW)
PRICES = 16  # that a fixed price is chosen from
KEPT = 1.0  # %: a setting that misses its goal by more is not chosen if there is one that does not


class Course(NamedTuple):
    """What somebody's tasks have brought and cost in every run, by every mark."""

    case: Case
    who: str
    setting: str
    reward: Floats  # (runs, marks)
    cost: Floats
    luck: Floats  # of what is to be kept: what has come beyond what was to be expected

    def came(self) -> Floats:
        """What is to be kept."""
        return self.reward if self.case.is_floor else self.cost

    def in_percent(self, mean: Floats) -> Floats:
        """By how much a mean is above the floor, or within the budget."""
        sign = 1.0 if self.case.is_floor else -1.0
        return 100.0 * sign * (mean / self.case.wanted - 1.0)

    def spare(self, tasks: int) -> Floats:
        """(runs,): % by which a goal is kept at the end of so many tasks; below 0 it is missed."""
        return self.in_percent(self.came()[:, mark_of(tasks)] / tasks)

    def windows(self, tasks: int) -> Floats:
        """(runs, windows): % by which it is kept in each window but the first."""
        return self.in_percent(np.diff(self.came()[:, : mark_of(tasks) + 1], axis=1) / WINDOW)

    def window_luck(self) -> float:
        """The standard deviation of a window's luck, in %."""
        return float(100.0 * np.diff(self.luck, axis=1).std() / WINDOW / abs(self.case.wanted))

    def short_windows(self, tasks: int, by: float) -> float:
        """% of the windows that miss the goal by more than so many %."""
        return float(100.0 * (self.windows(tasks) < -by).mean())

    def behind_optimum(self, tasks: int) -> Floats:
        """(runs,): % of cost beyond the optimum's or, where these are the aim, of reward or ratio short of it."""
        best, mark = self.case.best, mark_of(tasks)
        reward, cost = self.reward[:, mark] / tasks, self.cost[:, mark] / tasks
        if self.case.goal.goal == "cost":
            return 100.0 * (cost / best.cost - 1.0)
        came, most = (reward, best.reward) if self.case.goal.goal == "reward" else (reward / cost, best.ratio)
        return 100.0 * (1.0 - came / most)

    def worse(self, tasks: int) -> tuple[float, float]:
        """The same on average, with its standard error."""
        return mean_and_error(self.behind_optimum(tasks))


def mark_of(tasks: int) -> int:
    return tasks // WINDOW - 1


def mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def courses(
    cases: Sequence[Case], who: str, policies: Mapping[tuple[int, str], Policy], runs: int, seed: int
) -> list[Course]:
    """Policies by the place of their case and their setting, all in one world and with the same tasks."""
    environment, delay = cases[0].environment, cases[0].delay
    labelled = {f"{place} {setting}": policy for (place, setting), policy in policies.items()}
    found = simulate(environment, labelled, TASKS, runs, seed, delay, marks=[*MARKS], progress=False)
    reward, cost, expected_reward, expected_cost = (found.curves[..., at] for at in range(4))
    assert TOTALS[:4] == ("reward", "cost", "expected_reward", "expected_cost")
    made = []
    for column, (place, setting) in enumerate(policies):
        luck = (reward - expected_reward if cases[place].is_floor else cost - expected_cost)[:, column]
        made.append(Course(cases[place], who, setting, reward[:, column], cost[:, column], luck))
    return made


def default(cases: Sequence[Case], runs: int, seed: int) -> list[Course]:
    """Ours, told nothing but the goal."""
    return courses(cases, OURS, {(place, ""): case.policy for place, case in enumerate(cases)}, runs, seed)


def by_bounds(cases: Sequence[Case], runs: int, seed: int) -> list[Course]:
    """By confidence bounds, told the range of rewards and costs; the better of two ways for every goal."""
    scale = scale_of(cases[0].environment)
    told = scale.reward[1], scale.cost[0], scale.cost[1], scale.reward[0]
    policies = {
        (place, "paced" if paced else "task by task"): GoalByBounds(case.wanted, case.is_floor, paced, *told)
        for place, case in enumerate(cases)
        for paced in (True, False)
    }
    return best_settings(courses(cases, BOUNDS, policies, runs, seed))


def by_fixed_price(cases: Sequence[Case], runs: int, seed: int) -> list[Course]:
    """The default's index at a fixed price: the best of a grid for every goal, in hindsight."""
    bends = frontier_of(cases[0].best.means).price[1:]
    grid = np.geomspace(bends.min() / 1.5, bends.max() * 1.5, PRICES).tolist()
    policies = {
        (place, f"{price:.3g}"): FixedPrice(price, COST if is_floor else REWARD)
        for is_floor in (True, False)
        for place in [next(at for at, case in enumerate(cases) if case.is_floor == is_floor)]
        for price in grid
    }
    found = courses(cases, FIXED, policies, runs, seed)
    same = [course._replace(case=case) for case in cases for course in found if course.case.is_floor == case.is_floor]
    return best_settings(same)


def by_pareto_bandit(cases: Sequence[Case], runs: int, seed: int) -> list[Course]:
    """ParetoBandit, of the budgets: its best setting at the early mark goes on to the end."""
    budgets = [case for case in cases if not case.is_floor]
    marks = tuple(mark for mark in MARKS if mark <= EARLY)
    early = best_settings(played(budgets, {case.name: SETTINGS for case in budgets}, marks, 1, seed), EARLY)
    chosen = {course.case.name: (setting_named(course.setting),) for course in early}
    return played(budgets, chosen, tuple(MARKS), runs, seed)


def setting_text(setting: tuple[float, float]) -> str:
    return f"α = {setting[0]:g}, γ = {setting[1]:g}"


def setting_named(text: str) -> tuple[float, float]:
    return next(setting for setting in SETTINGS if setting_text(setting) == text)


def played(
    cases: Sequence[Case], settings: Mapping[str, Sequence[tuple[float, float]]], marks: tuple[int, ...], runs: int,
    seed: int,
) -> list[Course]:  # fmt: skip
    """ParetoBandit's runs in each of its settings."""
    wanted = [(case, setting) for case in cases for setting in settings[case.name]]
    matches = [
        Match(case.environment, case.wanted, marks, seed, run, setting)
        for case, setting in wanted
        for run in range(runs)
    ]
    curves = np.array(play_all(matches)).reshape(len(wanted), runs, len(marks), 2)
    return [
        Course(case, PARETO, setting_text(setting), curve[..., 0], curve[..., 1], np.zeros(curve.shape[:2]))
        for (case, setting), curve in zip(wanted, curves, strict=True)
    ]


def best_settings(found: Sequence[Course], tasks: int = TASKS) -> list[Course]:
    """For every goal the setting nearest to the optimum among those that keep it; if none does, that nearest to it."""

    def rank(course: Course) -> tuple[float, float]:
        missed = -float(course.spare(tasks).mean())
        return (missed if missed > KEPT else 0.0), float(course.behind_optimum(tasks).mean())

    names = dict.fromkeys(course.case.name for course in found)
    return [min((course for course in found if course.case.name == name), key=rank) for name in names]


def kind_by_kind(case: Case, runs: int, seed: int) -> tuple[Course, Floats]:
    """The default where every kind has a floor; and (runs, kinds): % by which each kind is above its own at the end."""
    marks, problem = np.array(MARKS), case.environment.problem
    sweep = Sweep(case.environment, [case.policy], TASKS, None, marks, Delay(0, 0), seed)
    job = Job(sweep, stages_of(case.environment, TASKS), Progress(0, False))
    floors, curves, spare = np.array([case.goal.floors[kind] for kind in problem.kinds]), [], []
    for run in range(runs):
        player, curve = job.players()[0], np.empty((len(marks), len(TOTALS) + 1))
        block = Block(*tasks_of_run(case.environment, TASKS, seed, run), NO_DELAY)
        player.play(job.stages[0], job.engines[0][0], block, 0, seed + run, marks, curve)
        arms = player.state.known.arms
        spare.append(100.0 * ((arms.pulls * arms.mean_reward).sum(axis=1) / arms.pulls.sum(axis=1) / floors - 1.0))
        curves.append(curve)
    reward, cost, expected_reward = np.moveaxis(np.array(curves), -1, 0)[:3]
    return Course(case, OURS, "", reward, cost, reward - expected_reward), np.array(spare)
