"""`check_environment`: does a world of your own keep the rules, and is the truth about it true?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from worthwhile.compiling import available, first_cause, machine_code
from worthwhile.problem import Problem
from worthwhile.simulation.environments import Drift, Environment, World, synthetic
from worthwhile.simulation.environments.base import fresh
from worthwhile.simulation.loop import features, feedback, put_down
from worthwhile.state import Floats, Indices
from worthwhile.testing import rules
from worthwhile.testing.rules import KEY, TASKS, attempt, broken

DRAWS, SLOW_DRAWS = 1 << 17, 1 << 13  # tasks drawn from a world: compiled, interpreted
ANSWERS = 1 << 24  # at most
ERRORS = 5.0  # standard errors that a mean may be off


def check_environment(environment: Environment | Drift | Problem) -> None:
    """Raise `BrokenRule` unless an environment (every stage of it, if it drifts) keeps every rule.

    >>> from worthwhile.problem import two_kinds
    >>> check_environment(two_kinds())
    """
    if isinstance(environment, Problem):
        environment = synthetic(environment)
    for _, stage in environment.stages():
        check_world(stage.problem, stage.world, stage.most_tasks)


def check_world(problem: Problem, world: World, most_tasks: int | None = None) -> None:
    """Every rule about one world and the problem that it claims to be."""
    missing = [name for name in ("draw", "feedback") if not callable(getattr(world, name, None))]
    if not (isinstance(world, tuple) and hasattr(world, "_fields")) or missing:
        raise broken(world, rules.WORLD, f"no method {missing[0]}" if missing else "it is not a NamedTuple")
    fast = available()
    count = min(DRAWS if fast else SLOW_DRAWS, ANSWERS // (1 if fast else 64) // len(problem.options))
    kinds, latents = check_draw(problem, world, min(max(TASKS, count), most_tasks or DRAWS))
    check_arrivals(problem, world, kinds)
    if hasattr(type(world), "features"):
        check_features(world, kinds[:TASKS], latents[:TASKS])
    for option in range(len(problem.options)):
        asked = problem.offered[:, option][kinds]
        check_answers(problem, world, option, kinds[asked], latents[asked])


def check_draw(problem: Problem, world: World, count: int) -> tuple[Indices, Floats]:
    """Tasks of the right form, the same for the same generator."""
    (kinds, latents), (kinds_again, latents_again) = (
        attempt(world, rules.DRAW, world.draw, np.random.default_rng(KEY), count) for _ in range(2)
    )
    forms = [(getattr(array, "dtype", None), np.shape(array)) for array in (kinds, latents)]
    columns = forms[1][1][1:]
    if forms != [(np.uint32, (count,)), (np.float64, (count, *columns))] or len(columns) != 1:
        raise broken(world, rules.DRAW, f"(type, shape) of kinds and latents are {forms} for {count} tasks")
    if kinds.max() >= len(problem.kinds):
        raise broken(world, rules.DRAW, f"kind {kinds.max()} where there are {len(problem.kinds)} kinds")
    if kinds.tobytes() != kinds_again.tobytes() or latents.tobytes() != latents_again.tobytes():
        raise broken(world, rules.SAME_DRAW, "two generators with the same seed drew different tasks")
    return kinds, latents


def check_arrivals(problem: Problem, world: World, kinds: Indices) -> None:
    """Shares of the kinds within five standard errors; a kind that never arrives, never."""
    seen, share = np.bincount(kinds, minlength=len(problem.kinds)) / len(kinds), problem.arrival
    allowed = ERRORS * (np.sqrt(share * (1.0 - share) / len(kinds)) + (share > 0.0) / len(kinds))
    for kind in np.flatnonzero(np.abs(seen - share) > allowed):
        shown = (
            f"kind {problem.kinds[kind]!r}: {seen[kind]:.6g} of {len(kinds)} tasks, the problem says {share[kind]:.6g}"
        )
        raise broken(world, rules.ARRIVALS, shown)


def check_features(world: Any, kinds: Indices, latents: Floats) -> None:
    """Rows of the same length, the same interpreted and compiled."""
    rows = [attempt(world, rules.FEATURES, world.features, *task) for task in zip(kinds, latents, strict=True)]
    for row in rows:
        form = getattr(row, "dtype", None), np.shape(row)
        if form != (np.float64, (len(rows[0]),)) or np.isinf(row).any():
            raise broken(world, rules.FEATURES, f"{row!r}, where the first task has {len(rows[0])}")
    if available() and len(rows[0]):
        told = np.zeros((len(rows), len(rows[0])))
        try:
            machine_code(tell_all, {"features": type(world).features}, ["features"])(world, kinds, latents, told)
        except Exception as error:  # it ran interpreted, so this is numba's doing
            raise broken(world, rules.COMPILES, first_cause(str(error))) from error
        if told.tobytes() != np.array(rows).tobytes():
            raise broken(world, rules.SAME_BITS, f"features {rows} and {told}")


def tell_all(world: Any, kinds: Indices, latents: Floats, told: Floats) -> None:
    """The features of every task; compiled like `loop.play`."""
    for task in range(len(kinds)):
        put_down(told, task, features(world, kinds[task], latents[task]))


def check_answers(problem: Problem, world: World, option: int, kinds: Indices, latents: Floats) -> None:
    """The feedback of one option to the tasks that offer it."""
    few = answer(world, option, kinds[:TASKS], latents[:TASKS])
    if few.tobytes() != answer(world, option, kinds[:TASKS], latents[:TASKS]).tobytes():
        raise broken(world, rules.SAME_DRAW, f"option {problem.options[option]!r} answered the same tasks differently")
    answers = answer_fast(world, option, kinds, latents) if available() else answer(world, option, kinds, latents)
    if answers[:TASKS].tobytes() != few.tobytes():
        raise broken(world, rules.SAME_BITS, f"option {problem.options[option]!r}: {few} and {answers[:TASKS]}")
    failed = np.isnan(answers[:, 0]) & problem.can_fail
    good = np.isfinite(answers[:, 1]) & (failed | np.isfinite(answers[:, 0]))
    if not good.all():
        row = int(np.argmin(good))
        raise broken(
            world, rules.FEEDBACK, f"{answers[row]} for {where(problem, kinds[row], option)}, latents {latents[row]}"
        )
    allowed = problem.cost_noise.family == "gaussian" and problem.cost_noise.sd != 0.0
    if not allowed and (answers[:, 1] < 0.0).any():
        row = int(np.argmin(answers[:, 1]))
        raise broken(world, rules.COSTS, f"cost {answers[row, 1]:g} for {where(problem, kinds[row], option)}")
    done = ~failed
    check_means(problem, world, option, kinds[done], answers[done, 0], "reward", problem.reward)
    check_means(problem, world, option, kinds[done], answers[done, 1], "cost", problem.cost)
    if problem.failure_rate is not None and problem.failure_cost is not None:
        check_means(problem, world, option, kinds, failed.astype(float), "failure", problem.failure_rate)
        check_means(
            problem, world, option, kinds[failed], answers[failed, 1], "cost of a failure", problem.failure_cost
        )


def check_means(
    problem: Problem, world: World, option: int, kinds: Indices, values: npt.NDArray[Any], name: str, means: Floats
) -> None:
    """Means within five standard errors; 25/n of the range on top, so that a rare large value is no offence."""
    for kind in np.unique(kinds):
        of_kind, mean = values[kinds == kind], means[kind, option]
        width = np.ptp(of_kind) or np.ptp(values)
        allowed = ERRORS * of_kind.std() / len(of_kind) ** 0.5 + ERRORS**2 * width / len(of_kind) + 1e-9 * abs(mean)
        if abs(of_kind.mean() - mean) > allowed:
            shown = f"mean {name} {of_kind.mean():.6g} ± {allowed / ERRORS:.2g}, the problem says {mean:.6g}"
            rule = rules.FAILURES if name == "failure" else rules.MEANS
            raise broken(world, rule, f"{where(problem, kind, option)}: {shown} ({len(of_kind)} tasks)")


def where(problem: Problem, kind: int, option: int) -> str:
    """A kind and an option by name."""
    return f"kind {problem.kinds[kind]!r}, option {problem.options[option]!r}"


def answer_all(world: Any, option: int, kinds: Indices, latents: Floats, answers: Floats) -> None:
    """Reward and cost of one option for every task; compiled like `loop.play`."""
    for task in range(len(kinds)):
        reward, cost = feedback(world, kinds[task], option, latents[task])
        answers[task, 0] = reward
        answers[task, 1] = cost


def answer(world: World, option: int, kinds: Indices, latents: Floats) -> Floats:
    """The interpreted feedback."""
    answers = np.empty((len(kinds), 2))
    attempt(world, rules.FEEDBACK, answer_all, fresh(world), option, kinds, latents, answers)
    return answers


def answer_fast(world: World, option: int, kinds: Indices, latents: Floats) -> Floats:
    """The compiled feedback."""
    answers = np.empty((len(kinds), 2))
    try:
        machine_code(answer_all, {"feedback": type(world).feedback})(fresh(world), option, kinds, latents, answers)
    except Exception as error:  # it ran interpreted, so this is numba's doing
        raise broken(world, rules.COMPILES, first_cause(str(error))) from error
    return answers
