"""The time that looking at features takes: 100 of them, 24 options."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from feature_worlds import CellWorld, without_features
from worlds import SILENT
from worthwhile import Environment, Problem, simulate
from worthwhile.policies.base import choose_by_features, learn, learn_features
from worthwhile.policies.features import MISSING, room_for
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.rng import Rng
from worthwhile.state import empty

FEATURES, OPTIONS, ITEMS, CELLS = 100, 24, 2_000, 16
MOST_TASK, MOST_DECIDE, MOST_REPORT, WORST_REPORT = 150e-6, 3e-3, 5e-3, 50e-3  # seconds


class Times(NamedTuple):
    """Seconds."""

    task: float  # compiled, with features
    task_without: float
    decide: float  # interpreted, on average
    report: float
    worst_decide: float
    worst_report: float

    def words(self) -> str:
        compiled = f"{1e6 * self.task:.3g} µs a task, {self.task / self.task_without:.0f} × as long as without"
        decide = f"{1e3 * self.decide:.3g} ms a decision (at most {1e3 * self.worst_decide:.3g})"
        report = f"{1e3 * self.report:.3g} ms a report (at most {1e3 * self.worst_report:.3g})"
        return f"{compiled}; interpreted {decide}, {report}"


def large() -> Environment:
    """Four features that matter among a hundred."""
    luck = np.random.default_rng(0)
    known = luck.random((ITEMS, FEATURES))
    cell = (known[:, :4] > 0.5) @ (1 << np.arange(4))
    reward, cost = luck.uniform(0.3, 0.9, (CELLS, OPTIONS)), luck.uniform(0.5, 1.5, (CELLS, OPTIONS))
    share = np.bincount(cell, minlength=CELLS)[None] / ITEMS
    options = tuple(map(str, range(OPTIONS)))
    problem = Problem("large", ("task",), options, np.ones(1), share @ reward, share @ cost, SILENT, SILENT)
    return Environment(problem, CellWorld(known, cell.astype(np.int64), reward, cost, False))


def per_task(tasks: int) -> tuple[float, float]:
    """Seconds per compiled task, with features and without; the second run has nothing left to compile."""
    worlds = large(), without_features(large())
    times = []
    for world in worlds:
        for _ in range(2):
            begin = time.perf_counter()
            simulate(world, [DEFAULT], tasks, 1, threads=1, marks=[tasks], progress=False)
            took = time.perf_counter() - begin
        times.append(took / tasks)
    return times[0], times[1]


def interpreted(tasks: int) -> tuple[float, float, float, float]:
    """Mean seconds of a decision and of a report, and the longest of either, in plain Python."""
    policy, environment = make(DEFAULT), large()
    world, room = environment.world, room_for(FEATURES)
    assert isinstance(world, CellWorld)
    state, known = empty(policy, 1, OPTIONS, room), np.full(room, MISSING)
    options, pending = np.arange(OPTIONS, dtype=np.uint32), np.zeros(OPTIONS, np.uint32)
    _, latents = world.draw(np.random.default_rng(0), tasks)
    times = np.zeros((tasks, 2))
    for task, latent in enumerate(latents):
        known[:FEATURES] = world.features(0, latent)
        rng, begin = Rng(0, task + 1), time.thread_time()  # other processes do not count
        made = choose_by_features(policy, state, 0, known, options, pending, rng)
        decided = time.thread_time()
        reward, cost = world.feedback(0, made.option, latent)
        told = time.thread_time()
        learn_features(policy, state, 0, known, made.option, reward, cost, rng)
        learn(policy, state, 0, made, reward, cost, rng)
        times[task] = decided - begin, time.thread_time() - told
    decide, report = times.mean(axis=0).tolist()
    return decide, report, *times.max(axis=0).tolist()
