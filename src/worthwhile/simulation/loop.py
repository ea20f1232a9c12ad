"""One run: arrive → choose → feedback → learn, the paper's loop, for any policy in any world.

`play` is plain Python. Interpreted, it calls the policy's and the world's methods through `choose`, `learn` and
`feedback`; compiled, a copy of it has those methods' machine code in their place. Nothing else differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.compiling import engine_named, first_cause, machine_code
from worthwhile.decision import Decision
from worthwhile.errors import BrokenRule, CannotCompile, Error
from worthwhile.optimum import Optimum
from worthwhile.policies.base import (
    INSTEAD,
    Policy,
    Running,
    aim,
    book,
    choose,
    choose_at,
    choose_by_features,
    fail,
    has_goal,
    learn,
    learn_features,
    looks_at_features,
    methods_of,
)
from worthwhile.problem import Problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments.base import World, features_in
from worthwhile.state import Floats, Indices

TOTALS = ("reward", "cost", "expected_reward", "expected_cost", "regret", "estimated_reward", "estimated_cost")
NOT_ON_OFFER = "an option that is not on offer"
BEGIN, END = 7, 8  # positions of these arguments of `play`
CAN_BE_LATE = True  # False in machine code for runs without delay, which then has no code for it
CAN_FAIL = True  # False likewise where no task fails
HAS_FEATURES = True  # False likewise where tasks have none, or the policy does not look at them
HAS_GOAL = True  # False likewise where the policy has none


class Truth(NamedTuple):
    """What is on offer for every kind, and what it is really worth."""

    options: Indices  # (kinds, most options of a kind)
    offers: Indices  # (kinds,): how many of them count
    worth: Floats  # (kinds, options, 3): mean reward, mean cost (0 if not on offer) and gap, side by side in memory


class Flight(NamedTuple):
    """Tasks whose feedback is still under way, in one list per task number at which they are due (modulo slots)."""

    pending: Indices  # (kinds, options)
    first: npt.NDArray[np.int64]  # (slots,): slot of the first task due, −1 if none
    last: npt.NDArray[np.int64]
    following: npt.NDArray[np.int64]  # (slots,): next slot in the same list
    kind: Indices
    option: Indices
    task: npt.NDArray[np.int64]
    values: Floats  # (slots, 4): the two estimates, reward, cost
    features: Floats  # (slots, features that the policy has room for): none if it does not look at any
    running: Floats  # (kinds and 1 for all, 3): tasks, and what is expected of them; empty if the policy has no goal


class Block(NamedTuple):
    """The next tasks, the same for all policies of a run."""

    kinds: Indices
    latent: Floats
    delay: npt.NDArray[np.int64]  # empty if feedback is never late


def feedback(world: World, kind: int, option: int, latent: Floats) -> tuple[float, float]:
    """Call the world's method; like the policy's, its machine code stands here in a compiled loop."""
    return world.feedback(kind, option, latent)


def features(world: Any, kind: int, latent: Floats) -> Floats:
    """Call the world's method, likewise; it is there if the flight has room for features."""
    row: Floats = world.features(kind, latent)
    return row


def no_features(world: Any, kind: int, latent: Floats) -> Floats:
    """What stands for a world's method where it has none, and nobody asks."""
    return latent


def play(
    policy: Any, state: Any, world: Any, truth: Truth, flight: Flight, totals: Floats,
    block: Block, begin: int, end: int, seed_key: int, before: int,
) -> None:  # fmt: skip
    """Tasks begin … end−1 of a block; `before` tasks of the run came before the block."""
    reward_sum, cost_sum, expected_reward, expected_cost = 0.0, 0.0, 0.0, 0.0
    regret, estimated_reward, estimated_cost = 0.0, 0.0, 0.0
    kinds, latents = block.kinds[begin:end], block.latent[begin:end]  # counted from 0: no checks for negative indices
    first = before + begin + 1
    for index in range(len(kinds)):
        kind = kinds[index]
        options = truth.options[kind, : truth.offers[kind]]
        rng = Rng(seed_key, first + index)
        slot = (first + index - 1) % len(flight.first)
        if HAS_FEATURES and flight.features.shape[1] > 0:
            put_down(flight.features, slot, features(world, kind, latents[index]))
        if HAS_GOAL and flight.running.shape[0] > 0:
            price = aim(policy, state, kind, running_in(flight, len(flight.running) - 1), running_in(flight, kind))
            known = flight.features[slot]
            made = choose_at(policy, state, price, kind, known, options, flight.pending[kind], rng)
        elif HAS_FEATURES and flight.features.shape[1] > 0:
            made = choose_by_features(policy, state, kind, flight.features[slot], options, flight.pending[kind], rng)
        else:
            made = choose(policy, state, kind, options, flight.pending[kind], rng)
        option = made.option
        if option < 0 or option >= truth.worth.shape[1] or truth.worth[kind, option, 1] <= 0.0:
            raise IndexError(NOT_ON_OFFER)
        reward, cost = feedback(world, kind, option, latents[index])
        if CAN_BE_LATE and len(block.delay) > 0:
            take_off(flight, kind, made, reward, cost, before + begin + index, block.delay[begin + index])
            land(policy, state, flight, seed_key, before + begin + index)
        else:
            take_in(policy, state, flight, slot, kind, made, reward, cost, rng)
        reward_sum += (
            0.0 if CAN_FAIL and math.isnan(reward) else reward
        )  # summed up in registers: `totals` is in memory
        cost_sum += cost
        expected_reward += truth.worth[kind, option, 0]
        expected_cost += truth.worth[kind, option, 1]
        regret += truth.worth[kind, option, 2]
        estimated_reward += made.reward_estimate
        estimated_cost += made.cost_estimate
    totals[0] += reward_sum
    totals[1] += cost_sum
    totals[2] += expected_reward
    totals[3] += expected_cost
    totals[4] += regret
    totals[5] += estimated_reward
    totals[6] += estimated_cost


def put_down(table: Floats, slot: int, row: Floats) -> None:
    """Keep a task's features until its feedback is there; the room beyond them stays NaN, for missing."""
    for number in range(len(row)):
        table[slot, number] = row[number]


def take_in(
    policy: Any, state: Any, flight: Flight, slot: int, kind: int, made: Decision, reward: float, cost: float, rng: Rng
) -> None:
    """Learn from what came of a task; one that failed has no reward, which a world says as NaN."""
    if HAS_FEATURES and flight.features.shape[1] > 0:
        learn_features(policy, state, kind, flight.features[slot], made.option, reward, cost, rng)
    if CAN_FAIL and math.isnan(reward):
        fail(policy, state, kind, made, cost, rng)
    else:
        learn(policy, state, kind, made, reward, cost, rng)
    if HAS_GOAL and flight.running.shape[0] > 0:
        came = Running(1.0, 0.0 if CAN_FAIL and math.isnan(reward) else reward, cost)
        book(policy, state, kind, came, Running(1.0, made.reward_estimate, made.cost_estimate))


def running_in(flight: Flight, row: int) -> Running:
    """Tasks of a kind that are running, or of all."""
    return Running(flight.running[row, 0], flight.running[row, 1], flight.running[row, 2])


def count_running(flight: Flight, kind: int, made: Decision, sign: float) -> None:
    """A task has begun to run, or has ended, for a policy with a goal."""
    if HAS_GOAL and flight.running.shape[0] > 0:
        count_in(flight.running, kind, made, sign)
        count_in(flight.running, len(flight.running) - 1, made, sign)


def count_in(running: Floats, row: int, made: Decision, sign: float) -> None:
    running[row, 0] += sign
    running[row, 1] += sign * made.reward_estimate
    running[row, 2] += sign * made.cost_estimate


def take_off(flight: Flight, kind: int, made: Decision, reward: float, cost: float, task: int, delay: int) -> None:
    """Put a task on the list of those due `delay` tasks from now, behind the ones already there."""
    slots = len(flight.first)
    slot, due = task % slots, (task + delay) % slots
    flight.pending[kind, made.option] += 1
    count_running(flight, kind, made, 1.0)
    flight.kind[slot] = kind
    flight.option[slot] = made.option
    flight.task[slot] = task + 1
    flight.values[slot, 0] = made.reward_estimate
    flight.values[slot, 1] = made.cost_estimate
    flight.values[slot, 2] = reward
    flight.values[slot, 3] = cost
    flight.following[slot] = -1
    if flight.first[due] < 0:
        flight.first[due] = slot
    else:
        flight.following[flight.last[due]] = slot
    flight.last[due] = slot


def land(policy: Any, state: Any, flight: Flight, seed_key: int, now: int) -> None:
    """Learn from every task that is due now."""
    due = now % len(flight.first)
    slot = flight.first[due]
    flight.first[due] = -1
    while slot >= 0:
        kind, option = flight.kind[slot], flight.option[slot]
        flight.pending[kind, option] -= 1
        made = Decision(option, flight.values[slot, 0], flight.values[slot, 1])
        count_running(flight, kind, made, -1.0)
        rng = Rng(seed_key, flight.task[slot])
        take_in(policy, state, flight, slot, kind, made, flight.values[slot, 2], flight.values[slot, 3], rng)
        slot = flight.following[slot]


def truth_of(problem: Problem, best: Optimum) -> Truth:
    """The tables that `play` needs of a problem."""
    offered = problem.offered
    offers = offered.sum(axis=1)
    options = np.argsort(~offered, axis=1, kind="stable")[:, : offers.max()].astype(np.uint32)
    reward, cost = (np.where(offered, means, 0.0) for means in problem.means_per_attempt)
    return Truth(np.ascontiguousarray(options), offers.astype(np.uint32), np.stack([reward, cost, best.gaps], axis=-1))


def new_flight(kinds: int, options: int, longest_delay: int, features: int = 0, goal: bool = False) -> Flight:
    """Nothing under way; feedback is at most `longest_delay` tasks late, and the policy has room for such features."""
    slots = longest_delay + 1
    first, last, following, task = (np.full(slots, -1, np.int64) for _ in range(4))
    pending, (kind, option) = np.zeros((kinds, options), np.uint32), np.zeros((2, slots), np.uint32)
    tables = np.zeros((slots, 4)), np.full((slots, features), np.nan)
    running = np.zeros((kinds + 1 if goal else 0, 3))
    return Flight(pending, first, last, following, kind, option, task, *tables, running)


def engine_for(
    policy: Policy, world: World, engine: str | None, late: bool = True, fails: bool = True
) -> Callable[..., None]:
    """`play` for this policy in this world: compiled if numba is installed, unless told otherwise."""
    names = type(policy).__name__, type(world).__name__
    if engine_named(engine) == "python":
        return explained(play, *names)
    parts = methods_of(policy) | {"feedback": type(world).feedback, "CAN_BE_LATE": late, "CAN_FAIL": fails}
    parts["HAS_GOAL"] = has_goal(policy)
    if looks_at_features(policy) and features_in(world):
        return explained(machine_code(play, parts | {"features": type(world).features}, views=["features"]), *names)  # type: ignore[attr-defined]
    parts |= {name: INSTEAD[name] for name in ("choose_by_features", "learn_features")}
    return explained(machine_code(play, parts | {"features": no_features, "HAS_FEATURES": False}), *names)


def explained(engine: Callable[..., None], policy: str, world: str) -> Callable[..., None]:
    """The loop, with its failures in our words."""

    def run(*arguments: Any) -> None:  # without any task to play, whatever fails is the compiler
        try:
            engine(*arguments)
        except Error:
            raise
        except Exception as error:
            if str(error) == NOT_ON_OFFER:
                raise BrokenRule(f"{policy} chose {error}; worthwhile.testing.check_policy finds out more") from error
            if not type(error).__module__.startswith("numba.") and arguments[BEGIN] < arguments[END]:
                raise BrokenRule(f"{policy} raised {type(error).__name__}: {error} ({line_of(error)})") from error
            raise CannotCompile(
                f"numba cannot compile {policy} in {world}: {first_cause(str(error))}; "
                "write it in plain scalar Python (docs/extend.md), or run it with engine='python'"
            ) from error

    return run


def line_of(error: BaseException) -> str:
    """The file and line that an exception comes from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
