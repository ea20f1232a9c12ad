"""The bundled trainings: really trained and timed, and worth scheduling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from worthwhile import Problem, Scheduler, replay, solve
from worthwhile.demo.bundled import EPOCHS, KINDS, stream, train
from worthwhile.demo.comparison import rules_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_also_shows_the_shorter_ones(kind: str) -> None:
    long, short = train(kind, 4, seed=3), train(kind, 2, seed=3)
    assert long.observed[2][0] == short.reward  # the same network, two epochs old
    assert 0.0 <= long.reward <= 1.0
    costs = [cost for _, cost in long.observed.values()] + [long.cost]
    assert costs == sorted(costs)


def test_every_training_has_its_own_seed_and_key() -> None:
    arrivals = list(stream(200, seed=1))
    assert len({arrival.key for arrival in arrivals}) == len({arrival.payload for arrival in arrivals}) == 200
    assert {arrival.kind for arrival in arrivals} == set(KINDS)
    assert arrivals == list(stream(200, seed=1))
    assert sum(training.arrival for training in KINDS.values()) == pytest.approx(1.0)


@pytest.mark.slow
def test_no_simple_rule_comes_within_five_per_cent_of_the_optimum(tmp_path: Path) -> None:
    """A run is recorded in which every training is the longest, and so shows all the others."""
    with Scheduler() as scheduler:
        scheduler.announce(options=EPOCHS)
        scheduler.change(policy=f"fixed-option,option={EPOCHS[-1]}")
        for kind in KINDS:
            train(kind, 1, seed=0)
            for seed in range(8):
                task = scheduler.decide(kind, EPOCHS)
                outcome = train(kind, task.option, seed)
                for option, values in outcome.observed.items():
                    task.observe(option, *values)
                task.report(outcome.reward, outcome.cost)
        assert scheduler.export(tmp_path / "recorded.csv") == 8 * len(KINDS) * len(EPOCHS)
    shares = {kind: training.arrival for kind, training in KINDS.items()}
    problem = replay(tmp_path / "recorded.csv", arrival=shares).problem
    ratios = rules_of(problem)
    best = solve(problem)
    assert ratios["optimum θ*"] == best.ratio
    for rule in ("always shortest", "always longest", "greedy per kind"):
        assert best.ratio >= 1.05 * ratios[rule], ratios


def test_the_rules_are_what_their_names_say() -> None:
    problem = Problem.of({"x": (0.5, {"1": (1, 1), "2": (3, 2)}), "y": (0.5, {"1": (1, 2), "2": (2, 10)})})
    ratios = rules_of(problem)
    assert ratios["always shortest"] == pytest.approx(2 / 3)
    assert ratios["always longest"] == pytest.approx(5 / 12)
    assert ratios["at random"] == pytest.approx((2 + 1.5) / (1.5 + 6))
    assert ratios["greedy per kind"] == ratios["optimum θ*"] == pytest.approx(4 / 4)
    assert np.isfinite(list(ratios.values())).all()
