"""The arena: its worlds are what they are called, rivals are told the truth, and limits are judged as they read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import earlier
from arena import REFERENCE, best_settings
from entrants import entrants, policy_of, scale_of
from judging import judge
from keeping import Kept, Key
from measuring import Measured, losses, measure
from suites import Row, new_rows, rows
from worlds import Coin, coins, slow_start, sure
from worthwhile import simulate, solve, two_kinds
from worthwhile.simulation.environments import synthetic
from worthwhile.testing import check_environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NEW = {row.name: row for row in new_rows(0)}
PAPER = Row("paper", (synthetic(two_kinds()),))


@pytest.mark.parametrize("name", [name for name in NEW if name not in ("heavy tails", "300 Zipf kinds")])
def test_worlds_have_the_means_that_their_problems_say(name: str) -> None:
    check_environment(NEW[name].worlds[0])


def test_heavy_tails_have_means_but_a_single_task_can_outweigh_many() -> None:
    environment = NEW["heavy tails"].worlds[0]
    kinds, latents = environment.world.draw(np.random.default_rng(0), 20_000)
    answers = np.array([environment.world.feedback(0, 0, latent) for latent in latents[kinds == 0]])
    means = environment.problem.reward[0, 0], environment.problem.cost[0, 0]
    assert answers.mean(axis=0) == pytest.approx(means, rel=0.1)
    assert answers[:, 1].max() > 10.0 * means[1]
    assert answers[:, 1].min() > 0.5 * means[1]


def test_a_coin_has_two_faces_and_a_sure_thing_one() -> None:
    world = coins("x", {"sure": (sure(0.45), sure(1.0)), "coin": (Coin(0.0, 1.0, 0.25), Coin(0.1, 5.0, 0.5))}).world
    _, latents = world.draw(np.random.default_rng(0), 2_000)
    answers = np.array([[world.feedback(0, option, latent) for latent in latents] for option in (0, 1)])
    assert [sorted({*column}) for column in answers.reshape(2, -1, 2).transpose(0, 2, 1).reshape(4, -1).tolist()] == [
        [0.45], [1.0], [0.0, 1.0], [0.1, 5.0],
    ]  # fmt: skip
    assert answers[1].mean(axis=0) == pytest.approx((0.25, 2.55), rel=0.1)


def test_the_first_task_of_an_option_is_slow_once_and_the_optimum_pays_for_it_too() -> None:
    environment = slow_start("x", {"steady": (1.0, 0.2, 0.0), "fast": (1.0, 0.1, 5.0)}, noise=0.0)
    result = simulate(
        environment, {"fast": "fixed-option,option=fast", "steady": "fixed-option"}, 100, 2, engine="python"
    )
    assert result.measure("cost")[:, :, -1] == pytest.approx(np.array([[15.0, 20.0]] * 2))
    assert losses(result, environment) == pytest.approx(np.array([[0.0, 25.0]] * 2))


def test_options_fail_as_rows_say_and_every_kind_has_one_that_works() -> None:
    always = NEW["one option always fails"].worlds[0].problem
    assert ((always.failures[0] == 1.0) & always.offered).sum(axis=1).tolist() == [1] * len(always.kinds)
    assert all(solve(world.problem).ratio > 0.0 for row in NEW.values() for world in row.worlds)


def test_rows_have_names_of_their_own_and_say_which_the_reference_did_not_know() -> None:
    everything = [*rows(0, None)]
    assert len({row.name for row in everything}) == len(everything)
    assert {row.name for row in everything if row.new} == set(NEW)


def test_rivals_are_told_the_noise_and_the_range_of_the_world() -> None:
    scale = scale_of(PAPER.worlds[0])
    assert (scale.reward_sd, scale.cost_sd) == pytest.approx((1.0, 1.0), rel=0.1)
    told = entrants(PAPER, PAPER.worlds[0], ("dol-rm", "omega-ucb", "m-ucb", "plug-ts", "b-greedy"))
    assert {policy_of(label) for label in told} == {"dol-rm", "omega-ucb", "m-ucb", "plug-ts", "b-greedy"}
    assert told["dol-rm [2σ]"] == f"dol-rm,noise={2 * scale.reward_sd:.9g}"
    assert f"reward_low={scale.reward[0]:.9g},cost_low=0" in told["omega-ucb [seen]"]
    assert told["m-ucb [seen, 2⁻²]"].endswith("width=0.25")
    assert told["omega-ucb [means]"] == "omega-ucb"
    assert entrants(PAPER, PAPER.worlds[0], ()) == {}


def measured(row: str, tasks: int, new: bool = False, runs: int = 1000, **losses: float) -> Measured:
    """A row in which policies lost so much, in every sample."""
    values = np.array([list(losses.values())] * 2)
    names = tuple(name.replace("_", "-") for name in losses)
    return Measured(row, new, tasks, names, runs, values, values, values[0], np.full(len(losses), 0.5))


def missed(*found: Measured) -> list[str]:
    return [verdict.limit for verdict in judge(found, "ours", "reference") if not verdict.kept]


def test_every_limit_is_judged_where_it_was_measured() -> None:
    assert missed(measured("fair coin", 10_000, ours=0.69)) == []
    assert missed(measured("fair coin", 10_000, ours=0.71)) == ["fair coin, T = 10,000: at most 0.7 % lost"]
    assert missed(measured("fair coin", 1_000, ours=9.9)) == []
    assert missed(measured("a", 10_000, ours=1.04, reference=1.0)) == []
    assert len(missed(measured("a", 10_000, ours=1.1, reference=1.0))) == 1  # the mean
    assert len(missed(measured("a", 10_000, ours=1.3, reference=1.0))) == 2  # the row as well
    assert missed(measured("a", 10_000, new=True, ours=1.3, reference=1.0)) == []
    assert missed(measured("a", 100_000, ours=0.005, reference=0.001)) == []  # both are as good as nothing
    assert missed(measured("a", 100_000, ours=1.0, dol_rm=0.95)) == []  # a tie
    assert len(missed(measured("a", 100_000, ours=1.4, dol_rm=1.0))) == 1
    assert len(missed(measured("a", 100_000, ours=1.6, dol_rm=1.0))) == 2


def test_stuck_runs_are_judged_when_there_are_enough() -> None:
    stuck = measured("a", 100_000, ours=1.0)._replace(stuck=np.array([1.5]))
    assert missed(stuck) == ["T = 100,000: at most 1 % of the runs stuck on each of 1 rows"]
    assert missed(stuck._replace(runs=60)) == []
    assert missed(stuck._replace(stuck=np.array([1.0]))) == []


def test_a_run_is_stuck_if_its_regret_grows_with_every_task() -> None:
    found = measure(PAPER, lambda row, world: {"wrong": "kind-greedy", "right": "optimum"}, 1_000, 8, 0)
    assert found.runs == 8
    assert found.stuck.tolist() == [pytest.approx(100.0, abs=30.0), 0.0]
    assert found.mean("right") == pytest.approx(0.0, abs=1e-12)


def test_rivals_that_were_measured_are_not_measured_again(tmp_path: Path) -> None:
    path, key = tmp_path / "rivals.npz", Key("paper", 100, 4, 0)
    asked = {"oracle": "oracle", "ours": "random-option"}
    first = Kept(path).measure(PAPER, lambda row, world: asked, "ours", key)
    again = Kept(path).measure(PAPER, lambda row, world: asked | {"oracle": "no such policy"}, "ours", key)
    assert again.policies == ("oracle", "ours")
    assert np.array_equal(first.loss, again.loss)
    assert Kept(path).measured[key].policies == ("oracle",)


def test_each_commit_has_its_own_measurements_as_the_reference(tmp_path: Path) -> None:
    path, key = tmp_path / "rivals.npz", Key("paper", 100, 4, 0)
    then: dict[str, Measured] = {}
    for commit, policy in (("one", "optimum"), ("other", "kind-greedy"), ("one", "no such policy")):
        asked = {f"{REFERENCE} [{commit}]": policy, "ours": "random-option"}
        found = Kept(path).measure(PAPER, lambda *_, asked=asked: asked, "ours", key)
        assert found.policies == (*asked,)
        best, _ = best_settings(found)
        assert best.policies == (REFERENCE, "ours")
        assert best.mean(REFERENCE) == then.setdefault(commit, best).mean(REFERENCE)
    assert then["one"].mean(REFERENCE) < then["other"].mean(REFERENCE)


def test_an_earlier_default_meets_the_same_worlds_as_todays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "src"], ["commit", "-qm", "one"], ["tag", "v0"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(earlier, "ROOT", tmp_path)
    assert earlier.commit_of("v0") == earlier.commit_of("HEAD")
    with pytest.raises(SystemExit, match="no commit 'nowhere'"):
        earlier.commit_of("nowhere")
    with earlier.earlier_default("v0") as policy:
        result = simulate(two_kinds(), {"then": policy, "now": "ratio-imed"}, 300, 2, engine="python")
    assert np.array_equal(result.curves[:, 0], result.curves[:, 1])
