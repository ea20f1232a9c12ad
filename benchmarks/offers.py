"""A run in which every task offers another half of its kind's options, which a simulation does not do.

As in `simulation/loop.py`, the loop is plain Python, and its machine code has the policy's and the world's methods in
place of the functions of their names.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from worthwhile import Environment
from worthwhile.compiling import machine_code
from worthwhile.policies.base import (
    choose,
    choose_by_features,
    learn,
    learn_features,
    looks_at_features,
    methods_of,
)
from worthwhile.policies.features import MISSING, room_for
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.rng import Rng
from worthwhile.simulation.environments.base import features_in
from worthwhile.simulation.loop import features, feedback, put_down
from worthwhile.state import Floats, Indices, empty


def play(
    policy: Any, state: Any, world: Any, kinds: Indices, latents: Floats, offers: Indices,
    known: Floats, pending: Indices, totals: Floats, seed_key: int,
) -> None:  # fmt: skip
    """All tasks; `known` is a row with room for a task's features, none if nobody looks at them."""
    for task in range(len(kinds)):
        kind, rng = kinds[task], Rng(seed_key, task + 1)
        if known.shape[1] > 0:
            put_down(known, 0, features(world, kind, latents[task]))
            made = choose_by_features(policy, state, kind, known[0], offers[task], pending, rng)
        else:
            made = choose(policy, state, kind, offers[task], pending, rng)
        reward, cost = feedback(world, kind, made.option, latents[task])
        if known.shape[1] > 0:
            learn_features(policy, state, kind, known[0], made.option, reward, cost, rng)
        learn(policy, state, kind, made, reward, cost, rng)
        totals[0] += reward
        totals[1] += cost


def changing_offers(environment: Environment, tasks: int, runs: int, seed: int) -> Floats:
    """What the default earns per cost in every run, where a task offers a random half of the options; one kind."""
    policy, world, options = make(DEFAULT), environment.world, len(environment.problem.options)
    parts = methods_of(policy) | {"feedback": type(world).feedback, "features": type(world).features}  # type: ignore[attr-defined]
    compiled = machine_code(play, parts, views=["features"])
    room = room_for(features_in(world)) if looks_at_features(policy) else 0

    def one(number: int) -> float:
        generator = np.random.default_rng([seed, number])
        offers = generator.permuted(np.tile(np.arange(options, dtype=np.uint32), (tasks, 1)), axis=1)
        offers = np.ascontiguousarray(offers[:, : (options + 1) // 2])
        totals, known = np.zeros(2), np.full((1, room), MISSING)
        state, pending = empty(policy, 1, options, room), np.zeros(options, np.uint32)
        compiled(policy, state, world, *world.draw(generator, tasks), offers, known, pending, totals, number)
        return float(totals[0] / totals[1])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.array([*pool.map(one, range(runs))])
