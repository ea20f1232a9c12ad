"""Experiments beyond the paper: the default is compared by one rule, worlds are what their words say, data repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiments import BEYOND, SEED, cut, outcome_in

from worthwhile.experiments import (
    EXPERIMENTS,
    Outcome,
    Scale,
    changes,
    delays,
    fading,
    omega_benchmark,
    recorded_tables,
    sensitivity,
    sizes,
)
from worthwhile.experiments.base import OURS
from worthwhile.experiments.comparison import Setting, default_claim, losses_on, settings_table, simulate_each
from worthwhile.experiments.records import read_record, write_csv
from worthwhile.optimum import bounds_of, solve
from worthwhile.policies.base import known
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.problem import Noise, Problem, seven_kinds
from worthwhile.random_problems import random_problem
from worthwhile.simulation.environments.replay import replay
from worthwhile.simulation.environments.synthetic import drifting

QUICK = Scale(quick=True, progress=False)
NAMES = {module.__name__.rpartition(".")[2]: module for module in BEYOND}


def test_all_are_on_the_list() -> None:
    listed = {experiment.run for experiment in EXPERIMENTS}
    assert listed >= {module.run for module in BEYOND}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_data_repeats_with_the_seed_and_every_part_is_there(
    name: str, everything: Path, two_tables: Path, tmp_path: Path
) -> None:
    first = everything / name.replace("_", "-")
    with cut(BEYOND):
        again: Outcome = NAMES[name].run(QUICK._replace(tables=two_tables, seed=SEED))  # type: ignore[attr-defined]
    assert {f"{table}.csv" for table in again.data} == {path.name for path in first.glob("*.csv")}
    for table, columns in again.data.items():
        assert len({len(column) for column in columns.values()}) == 1
        write_csv(columns, tmp_path / "again.csv")
        assert (tmp_path / "again.csv").read_bytes() == (first / f"{table}.csv").read_bytes()
    record = read_record(first)
    assert (again.words, list(again.claims)) == (record.words, record.claims)
    assert {claim.verdict for claim in again.claims} == {OURS}
    assert name == "fading" or any("not best in" in claim.evidence for claim in again.claims)
    for figure in again.figures.values():
        assert all(axes.get_xlabel() for axes in figure.axes)
        assert any(axes.get_ylabel() or axes.get_yticklabels() for axes in figure.axes)


def setting(default: list[float], rival: list[float], oracle: float = 0.0) -> Setting:
    """One setting with three policies."""
    losses = np.array([default, rival, [oracle] * len(default)]).T
    return Setting({"world": "toy", "delay": 1000}, (DEFAULT, "omega-ucb", "oracle"), losses)


@pytest.mark.parametrize(
    ("default", "rival", "standing"),
    [
        ([5.0, 5.1, 4.9, 5.0], [3.0, 3.1, 2.9, 3.1], "better"),
        ([3.0, 3.1, 2.9, 3.1], [5.0, 5.1, 4.9, 5.0], "worse"),
        ([5.0, 5.01, 4.99], [4.92, 4.93, 4.91], "tie"),  # certain, but less than 0.1 % of the optimum
        ([9.0, 1.0, 5.0], [2.0, 2.0, 2.0], "tie"),  # large, but within two standard errors
        ([90.0, 10.0, 50.0], [89.0, 9.0, 49.1], "better"),  # problems differ, the difference does not
    ],
)
def test_a_difference_counts_beyond_two_of_its_errors_and_a_tenth_of_a_percent(
    default: list[float], rival: list[float], standing: str
) -> None:
    assert setting(default, rival).standing("omega-ucb") == standing
    assert setting(default, rival).standing(DEFAULT) == "tie"


def test_the_claim_names_where_the_default_is_not_best_and_by_how_much() -> None:
    behind, ahead = setting([5.0, 5.5, 4.5], [3.0, 3.5, 2.5]), setting([1.0, 1.5, 0.5], [3.0, 3.5, 2.5])
    claim = default_claim([behind, ahead], "Toys")
    assert claim.evidence == (
        "not best in 1 of 2 settings: toy, delay 1,000: omega-ucb loses 2 ± 0 % less (3 beside 5 %)"
    )  # the oracle, who is told everything, is no rival
    assert default_claim([ahead], "Toys").evidence == "not best in 0 of 1 settings"
    many = default_claim([behind] * 9, "Toys").evidence
    assert many.count("omega-ucb") == 6
    assert many.endswith("; 3 more in the table")


def test_the_table_has_every_policy_beside_the_default() -> None:
    table = settings_table([setting([5.0, 5.1, 4.9], [3.0, 3.1, 2.9])])
    assert table["policy"] == [DEFAULT, "omega-ucb", "oracle"]
    assert table["delay"] == [1000] * 3
    assert table["ahead_of_default"] == pytest.approx([0.0, 2.0, 5.0])
    assert table["beside_default"] == ["tie", "better", "better"]


@pytest.mark.slow
def test_worlds_side_by_side_are_simulated_as_each_alone() -> None:
    worlds = [random_problem("unit", number) for number in range(3)]
    names = [DEFAULT, "bts"]
    together = losses_on(QUICK._replace(seed=4), worlds, names, 700, 1)
    alone = [QUICK._replace(seed=4 + n).simulate(world, names, 700, 1, marks=[]) for n, world in enumerate(worlds)]
    assert together.tolist() == [(100.0 * results.measure("loss")[0, :, -1]).tolist() for results in alone]


def test_an_error_in_one_world_stops_the_experiment() -> None:
    with pytest.raises(Exception, match="no policy 'nobody'"):
        simulate_each(QUICK, [seven_kinds()] * 3, ["nobody"], 100)


@pytest.mark.parametrize("problem", [seven_kinds(), random_problem("unit", 3)], ids=lambda problem: problem.name)
def test_wrong_beliefs_are_wrong_by_their_factor_and_agree_with_each_other(problem: Problem) -> None:
    truth, truly_known = bounds_of(problem), known(problem, 1000)
    for belief, factors in sensitivity.BELIEFS.items():
        for factor in factors:
            policy: Any = make(sensitivity.misled(problem, 1000, belief, factor), truly_known)
            assert policy.anytime
            assert policy.horizon == round(1000 * (factor if belief == "horizon" else 1))
            assert policy.reward_max == pytest.approx(truth.reward_max * (factor if belief == "r_max" else 1))
            assert policy.cost_min == pytest.approx(truth.cost_min * (factor if belief == "c_min" else 1))
            assert policy.price_max == pytest.approx(policy.reward_max / policy.cost_min)
            assert policy.price_min <= policy.price_max
            if factor == 1.0:
                assert policy == make(sensitivity.PAPER, truly_known)


def test_the_default_does_not_mind_the_unit_of_costs_and_dol_rm_does() -> None:
    problem = random_problem("unit", 1)
    losses = np.array(
        [
            losses_on(QUICK, [sensitivity.scaled(problem, "costs", factor)], (DEFAULT, "dol-rm-anytime"), 3000, 4)
            for factor in (1e-3, 1.0, 1e3)
        ]
    )
    assert losses[0, :, 0] == pytest.approx(losses[1, :, 0])
    assert losses[2, :, 0] == pytest.approx(losses[1, :, 0])
    assert losses[:, :, 1].mean(axis=1).max() > 2.0 * losses[:, :, 1].mean(axis=1).min()


def test_scaled_noise_is_noise_of_that_scale() -> None:
    problem = sensitivity.scaled(random_problem("unit", 1), "noise", 10.0)
    assert (problem.reward_noise, problem.cost_noise) == (Noise(sd=3.0), Noise(sd=3.0))
    assert sensitivity.scaled(seven_kinds(), "noise", 0.01).cost_noise == Noise(sd=0.01)


def test_options_that_change_places_keep_the_bounds_and_move_the_optimum() -> None:
    for number in range(5):
        problem = random_problem("unit", number)
        turned = changes.turned(problem)
        assert bounds_of(turned) == bounds_of(problem)
        assert np.array_equal(turned.offered, problem.offered)
        assert solve(turned).ratio == pytest.approx(solve(problem).ratio)
        assert solve(turned).best.tolist() != solve(problem).best.tolist()
        assert changes.turned(turned) == problem


def test_rolling_losses_add_up_to_the_whole() -> None:
    problem = random_problem("unit", 2)
    world = drifting([(0, problem), (1000, changes.turned(problem))])
    marks = [500, 1000, 1500, 2000]
    results = QUICK.simulate(world, [DEFAULT, "random-option"], 2000, 3, marks=marks)
    windows = changes.rolling_losses([results])
    assert windows.shape == (3, 2, 4)
    reward, cost = np.diff(results.optimum, axis=0, prepend=0.0).T
    spent = np.diff(results.measure("expected_cost"), prepend=0.0)
    regret = (windows * spent * reward / cost).sum(axis=2) / 100.0
    assert regret == pytest.approx(results.measure("regret")[:, :, -1])


def test_recovery_is_the_first_window_from_which_on_losses_stay_low() -> None:
    half = changes.WINDOWS // 2
    losses = np.full((2, len(changes.POLICIES), changes.WINDOWS), 0.5)
    losses[:, 0, half : half + 3] = 30.0
    losses[:, 1, half:] = 30.0
    losses[:, 2, half + 5] = 30.0
    evidence = changes.recovery({changes.SHIFT: losses}, changes.SHIFT, 40_000).evidence.split("; ")
    assert evidence[0].startswith("dol-rm after 4,000 tasks (0.5 ± 0 % before the change")
    assert evidence[1].startswith("dol-rm-anytime not within 20,000 tasks")
    assert evidence[2].startswith("omega-ucb after 7,000 tasks")
    assert evidence[3].startswith("ratio-ts after 1,000 tasks")


def test_a_change_that_is_never_learned_is_said_in_words() -> None:
    rolling = np.full(fading.WINDOWS, 9.0)
    rolling[: fading.WINDOWS // 2] = 1.0
    assert fading.recovery(rolling, 2000) is None
    never = fading.Faded(0, np.array([1.0, 2.0]), rolling, None)
    soon = fading.Faded(200, np.array([3.0, 4.0]), rolling, 300.0)
    assert fading.speed([never, soon]).evidence == (
        "never fading: not within the run; half-life 200: 300 tasks, within 3 half-lives"
    )
    late = never._replace(recovery=3000.0)
    assert fading.speed([late, soon, soon._replace(recovery=None)]).evidence == (
        "never fading: 3,000 tasks; half-life 200: 300 tasks, within 3 half-lives, 10 times as fast; "
        "half-life 200: not within the run, NOT within 3 half-lives"
    )


def test_windows_drawn_together_cover_all_and_keep_the_mean() -> None:
    ends, means = fading.evened_out(np.arange(100.0))
    lengths = np.diff(ends, prepend=0.0)
    assert ends[-1] == 100.0
    assert (np.diff(lengths[3:]) >= 0.0).all()
    assert lengths[-1] > 10.0
    assert float(means @ lengths) == pytest.approx(np.arange(100.0).sum())


def test_shuffled_problems_are_the_same_problems() -> None:
    problem = random_problem("train", 4)
    shuffled = delays.shuffled(problem, 1)
    assert shuffled.options != problem.options
    assert solve(shuffled).ratio == pytest.approx(solve(problem).ratio)
    for number, option in enumerate(shuffled.options):
        column = problem.options.index(option)
        assert np.array_equal(shuffled.reward[:, number], problem.reward[:, column], equal_nan=True)


@pytest.mark.slow
def test_late_feedback_costs_everybody_something(everything: Path) -> None:
    table = outcome_in(everything, "delays").data["delays"]
    rows = list(
        zip(table["world"], table["order"], table["delay"], table["policy"], table["loss_percent"], strict=True)
    )
    for world in delays.WORLDS:
        orders = {(order, delay) for where, order, delay, _, _ in rows if where == world}
        assert orders == {(delays.FIXED, 0), (delays.FIXED, 300), (delays.RANDOM, 300)}
    for policy in delays.POLICIES:
        lost = {row[1:3]: row[4] for row in rows if row[0] == "train family" and row[3] == policy}
        assert lost[delays.FIXED, 0] < lost[delays.FIXED, 300]


@pytest.mark.parametrize(("growing", "shape"), [("options", (1, 70)), ("kinds", (70, 5))])
def test_problems_have_the_size_asked_for(growing: str, shape: tuple[int, int]) -> None:
    problem = sizes.problem_of(growing, 70, 3)
    assert problem.reward.shape == shape
    assert problem.arrival == pytest.approx(1.0 / shape[0])
    for means in (problem.reward, problem.cost):
        assert 0.1 <= means.min() < 0.2
        assert 0.9 < means.max() <= 1.0
    assert problem == sizes.problem_of(growing, 70, 3)
    assert problem != sizes.problem_of(growing, 70, 4)


def test_beta_worlds_have_the_means_and_deviations_that_their_words_promise() -> None:
    world = omega_benchmark.world("beta", 12, 1)
    problem, count = world.problem, 4000
    kinds, latents = world.world.draw(np.random.default_rng(0), count)
    assert set(kinds.tolist()) == {0}
    for option in range(12):
        seen = np.array([world.world.feedback(0, option, latent) for latent in latents])
        assert 0.0 <= seen.min() < seen.max() <= 1.0
        for values, mean in zip(seen.T, (problem.reward[0, option], problem.cost[0, option]), strict=True):
            deviation = mean * (1.0 - mean)
            assert values.mean() == pytest.approx(mean, abs=5.0 * deviation / np.sqrt(count))
            assert values.std() == pytest.approx(deviation, rel=0.15)


def test_every_family_of_the_benchmark_has_the_same_means() -> None:
    first, second, third = (omega_benchmark.world(noise, 50, 7).problem for noise in omega_benchmark.NOISES)
    assert np.array_equal(first.reward, second.reward)
    assert np.array_equal(first.cost, third.cost)
    assert 0.01 <= first.cost.min() < first.cost.max() <= 1.0
    assert first.reward.min() < 0.1
    assert first.reward.max() > 0.9


def test_without_tables_the_words_say_how_to_give_some(tmp_path: Path) -> None:
    for folder, why in ((None, "No folder of recorded tables was given"), (tmp_path, "The folder of recorded tables")):
        outcome = recorded_tables.run(QUICK._replace(tables=folder))
        assert outcome.words.startswith(why)
        assert "--tables FOLDER" in outcome.words
        assert (outcome.data, outcome.figures, outcome.claims) == ({}, {}, ())


@pytest.mark.slow
def test_headroom_is_what_solving_each_table_says(everything: Path, two_tables: Path) -> None:
    outcome = outcome_in(everything, "recorded-tables")
    table = outcome.data["headroom"]
    assert table["table"] == ["cheap", "set-up"]
    assert table["degenerate"] == [True, False]
    for row, name in enumerate(table["table"]):
        best = solve(replay(two_tables / f"{name}.csv").problem)
        assert (table["best_ratio"][row], table["greedy_ratio"][row]) == (best.ratio, best.greedy_ratio)
    assert "Degenerate, the cheapest option being best for every kind: cheap." in outcome.words
    assert "degenerate" in outcome.claims[0].evidence
    assert "degenerate" not in outcome.claims[1].evidence


def test_large_tables_are_replayed_with_fewer_tasks(monkeypatch: pytest.MonkeyPatch, two_tables: Path) -> None:
    monkeypatch.setattr(recorded_tables, "QUICK_WORK", 4 * 4 * 500)  # runs × options × tasks
    outcome = recorded_tables.run(QUICK._replace(tables=two_tables))
    assert max(outcome.data["recorded-tables-curves"]["tasks"]) == 500
    assert "500 tasks" in outcome.words
