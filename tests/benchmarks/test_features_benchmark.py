"""The benchmark of features: worlds are what they claim, rivals meet the same tasks, limits are judged as they read."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import feature_worlds
import features
from feature_rivals import LINUCB, VOWPAL, Match, items_of_run, play, portfolio
from feature_speed import Times, large
from feature_worlds import (
    exclusive_or,
    merged,
    one_split,
    per_item,
    rare_cell,
    replayed,
    scenario,
    scenarios,
    useless,
    with_another_tasks,
    with_noise,
    with_real_rewards,
    without_features,
)
from features import DELAYED, NOISY, ONE_PASS, PLAIN, REPLACED, SHUFFLED, Compared, Found, Ratios, judge
from offers import changing_offers
from worthwhile import Environment, simulate, solve
from worthwhile.simulation.environments.base import features_in
from worthwhile.testing import check_environment

ITEMS = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tables in which one feature says which of three options solves the item."""
    luck = np.random.default_rng(0)
    for name in ("first", "second"):
        size = luck.random(ITEMS)
        rows = [(item, option) for item in range(ITEMS) for option in range(3)]
        solved = [float(option == int(3 * size[item])) for item, option in rows]
        columns = {
            "task_type": [name] * len(rows),
            "item_id": [item for item, _ in rows],
            "option": [f"o{option}" for _, option in rows],
            "reward": solved,
            "cost": [0.1 if done else 1.0 for done in solved],
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
        known = {"item_id": [*range(ITEMS)], "size": size, "other": luck.random(ITEMS), "same": np.ones(ITEMS)}
        pyarrow.parquet.write_table(pyarrow.table(known), tmp_path / f"{name}.features.parquet")
    return tmp_path


def test_made_worlds_offer_what_they_claim() -> None:
    assert one_split().possible == pytest.approx(1.25, abs=0.01)
    assert exclusive_or().possible >= 1.2
    assert rare_cell().possible == pytest.approx(1.07, abs=0.01)
    assert useless().possible == pytest.approx(1.0)
    for made in (one_split(), one_split(real_valued=True), exclusive_or(), rare_cell(), useless()):
        assert isinstance(made.environment, Environment)
        check_environment(made.environment)
    swapped = feature_worlds.swapped(100).environment
    check_environment(swapped)
    check_environment(large())
    assert [start for start, _ in swapped.stages()] == [0, 50]
    assert [features_in(stage.world) for _, stage in without_features(swapped).stages()] == [0, 0]


def test_no_feature_of_the_exclusive_or_says_anything_by_itself() -> None:
    world = exclusive_or().environment.stages().__next__()[1].world
    assert isinstance(world, feature_worlds.CellWorld)
    for number in range(2):
        assert world.cell[world.known[:, number] > 0.5].mean() == pytest.approx(0.5, abs=0.02)


def test_tables_are_changed_in_one_respect_only(folder: Path) -> None:
    assert scenarios(folder) == ["first", "second"]
    plain = scenario(folder, "first", one_pass=True)
    noisy, shuffled, real = with_noise(plain, 0), with_another_tasks(plain, 0), with_real_rewards(plain, 0)
    assert replayed(noisy).known.shape == (ITEMS, 53)
    assert np.array_equal(replayed(noisy).known[:, :3], replayed(plain).known)
    assert not np.array_equal(replayed(shuffled).known, replayed(plain).known)
    assert np.array_equal(np.sort(replayed(shuffled).known, axis=0), np.sort(replayed(plain).known, axis=0))
    assert len(np.unique(replayed(real).reward)) > 30
    for environment in (noisy, shuffled, real):
        assert environment.most_tasks == ITEMS
        check_environment(environment)
    bare = without_features(plain)
    assert isinstance(bare, Environment)
    assert features_in(bare.world) == 0


def test_who_knows_every_item_solves_it_at_a_tenth_of_the_cost(folder: Path) -> None:
    plain = scenario(folder, "first")
    assert per_item(plain) == pytest.approx(10.0)
    assert solve(plain.problem).ratio < 1.0
    both = merged([plain, scenario(folder, "second")])
    check_environment(both)
    assert per_item(both) == pytest.approx(10.0)
    assert both.problem.offered.tolist() == [[True] * 3 + [False] * 3, [False] * 3 + [True] * 3]
    world = replayed(both)
    assert np.isnan(world.features(0, np.zeros(1))).tolist() == [False] * 3 + [True] * 3


def test_rivals_meet_the_tasks_that_we_meet(folder: Path) -> None:
    for one_pass in (False, True):
        environment = scenario(folder, "first", one_pass)
        tables = portfolio(environment)
        assert tables.known.shape == (ITEMS, 2)
        results = simulate(environment, ["fixed-option,option=o1"], 30, 2, seed=5, engine="python")
        for run in range(2):
            items = items_of_run(environment, 30, 5, run)
            assert tables.reward[items, 1].sum() == results.measure("reward")[run, 0, -1]


@pytest.mark.parametrize(("rival", "setting"), [(VOWPAL, ("--squarecb --gamma_scale 10000",)), (LINUCB, (0.1, 25))])
def test_rivals_learn(folder: Path, rival: str, setting: tuple[object, ...]) -> None:
    environment = scenario(folder, "first")
    short, long = (play(Match(environment, tasks, 0, 0, rival, setting)) for tasks in (20, 1000))
    assert long > 1.3 * solve(environment.problem).ratio
    assert long > short


@pytest.mark.slow
def test_where_options_change_each_task_takes_one_that_is_offered(folder: Path) -> None:
    environment = scenario(folder, "first")
    one, again, other = (changing_offers(environment, 200, 3, seed) for seed in (0, 0, 1))
    assert one.tolist() == again.tolist() != other.tolist()
    best = 2 / 3 * 10 / (2 / 3 + 10 / 3)  # two of three options: one task in three cannot be solved
    assert (one < 1.5 * best).all()


def ratios(*gains: float) -> Ratios:
    names = "abcdefghij"
    return {name: Compared(np.array([gain, gain]), np.ones(2)) for name, gain in zip(names, gains, strict=False)}


def missed(found: Found) -> list[str]:
    return [verdict.limit for verdict in judge(found) if not verdict.kept]


NOTHING = Found({}, {}, None, {}, None)


def test_every_limit_is_judged_where_it_was_measured() -> None:
    def tables(horizon: str, plain: Ratios, **others: Ratios) -> list[str]:
        variants = {"noisy": NOISY, "shuffled": SHUFFLED, "late": DELAYED}
        measured = {(horizon, PLAIN): plain} | {(horizon, variants[name]): one for name, one in others.items()}
        return missed(NOTHING._replace(ratios=measured))

    assert tables(ONE_PASS, ratios(1.2, 0.961)) == []
    assert len(tables(ONE_PASS, ratios(1.06, 1.06))) == 1
    assert tables(ONE_PASS, ratios(1.3, 0.95)) == ["one pass, own features: none below 0.96 ×"]
    assert tables(REPLACED, ratios(1.151)) == []
    assert len(tables(REPLACED, ratios(1.14, 0.96))) == 2
    assert tables(ONE_PASS, ratios(1.1), noisy=ratios(1.071)) == []
    assert len(tables(ONE_PASS, ratios(1.1), noisy=ratios(1.069))) == 1
    assert tables(ONE_PASS, ratios(1.1), shuffled=ratios(0.98, 0.99)) == []
    assert len(tables(ONE_PASS, ratios(1.1), shuffled=ratios(0.91, 1.0))) == 2
    assert tables(REPLACED, ratios(1.2), late=ratios(1.161)) == []
    assert len(tables(REPLACED, ratios(1.2), late=ratios(1.159))) == 1
    assert len(tables(REPLACED, ratios(1.2), late=ratios(1.5, 0.97))) == 1


def test_made_worlds_kinds_rivals_and_times_are_judged() -> None:
    good, bad = ratios(1.11)["a"], ratios(1.09)["a"]
    assert missed(NOTHING._replace(made={"one split": (good, 1.25), "rare cell": (bad, 1.07)})) == []
    assert missed(NOTHING._replace(made={"exclusive or": (bad, 1.25)})) == ["exclusive or: at least 1.1 × no features"]
    assert missed(NOTHING._replace(kinds=(good, 1.13))) == []
    assert len(missed(NOTHING._replace(kinds=(good, 1.15)))) == 1
    assert [len(missed(NOTHING._replace(of_fixed=share))) for share in (0.99, 1.0)] == [1, 0]
    plain = {(ONE_PASS, PLAIN): ratios(*[1.2] * 10)}
    earned = {name: np.array([1.1 if place < 8 else 1.3]) for place, name in enumerate("abcdefghij")}
    found = NOTHING._replace(ratios=plain, rivals={(ONE_PASS, VOWPAL): earned})
    assert missed(found) == []
    assert len(missed(found._replace(rivals={(ONE_PASS, VOWPAL): earned | {"a": np.array([1.3])}}))) == 1
    times = Times(140e-6, 20e-6, 2e-3, 4e-3, 9e-3, 40e-3)
    assert missed(NOTHING._replace(times=times)) == []
    assert len(missed(NOTHING._replace(times=times._replace(task=160e-6, worst_report=60e-3)))) == 2
    assert "7 × as long as without" in times.words()


def test_numbers_are_printed_and_saved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {(ONE_PASS, PLAIN): {"first": ratios(1.2)["a"], "second": ratios(1.1)["a"]}}
    found[REPLACED, PLAIN] = found[ONE_PASS, PLAIN]
    rivals = {(ONE_PASS, rival): {name: np.ones(1) for name in ("first", "second")} for rival in (VOWPAL, LINUCB)}
    linear = {(ONE_PASS, "linear-ts"): {name: np.full(1, 0.9) for name in ("first", "second")}}
    everything = NOTHING._replace(ratios=found, rivals=rivals, linear=linear)
    fixed = [solve(scenario(folder, name).problem).ratio for name in ("first", "second")]
    assert features.print_bounds(folder, found) == pytest.approx(math.sqrt(1.2 / fixed[0] * 1.1 / fixed[1]))
    features.print_ratios("a title", found[ONE_PASS, PLAIN])
    features.print_rivals(everything)
    features.save(folder / "out" / "features.csv", everything)
    shown = capsys.readouterr().out
    assert shown.count("first") == shown.count("second") == 3
    assert f"{'1.200':>24}{'0.900':>24}{'1.000':>24}{'1.000':>24}" in shown
    assert len((folder / "out" / "features.csv").read_text().splitlines()) == 1 + 2 * 2 * 2 + 4 + 2


def test_policies_with_linear_models_are_shown_in_their_best_setting_and_not_judged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "TASKS", 30)
    monkeypatch.setattr(features, "LINEAR", {"linear-greedy": (",exploration=0", ",exploration=9")})
    monkeypatch.setattr(features, "simulate", partial(simulate, engine="python"))
    linear = features.measure_linear(folder, runs=2, seed=0, quick=False)
    assert [*linear] == [(ONE_PASS, "linear-greedy"), (REPLACED, "linear-greedy")]
    environment = scenario(folder, "first")
    [best] = re.findall(rf"{REPLACED}.* best with (\S+):", capsys.readouterr().out)
    alone = simulate(environment, [best], 30, 2, engine="python").measure("ratio")[:, 0, -1]
    assert linear[REPLACED, "linear-greedy"]["first"] == pytest.approx(alone)
    assert missed(NOTHING._replace(linear=linear)) == []
