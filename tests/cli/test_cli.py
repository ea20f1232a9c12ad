"""The command line: its numbers are the library's, its files say where they come from, and it stops politely."""

from __future__ import annotations

import csv
import json
import re
import runpy
import shlex
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import worthwhile
from worthwhile import drifting, random_problem, read_problem, replay, seven_kinds, simulate, solve, two_kinds
from worthwhile.cli.main import main, parser
from worthwhile.cli.simulate import USUAL
from worthwhile.optimum import gap
from worthwhile.policies.registry import LIST
from worthwhile.simulation.results import Results
from worthwhile.theory import theorem_bound

TRAINING = """
units = { reward = "AUC", cost = "s" }
noise = { reward = { sd = 0.1 }, cost = { family = "lognormal", cv = 0.2 } }
[[kind]]
name = "photos"
arrival = 0.7
options = { short = { reward = 0.8, cost = 10.0 }, long = { reward = 0.9, cost = 11.0 } }
[[kind]]
name = "texts"
arrival = 0.3
options = { short = { reward = 0.3, cost = 5.0 }, long = { reward = 0.9, cost = 14.0 } }
"""
TABLE = "task_type,item_id,option,reward,cost\n" + "\n".join(
    f"{kind},{item},{option},{(item % 7) / 7 + number},{1 + number * (1 + item % 3)}"
    for kind in ("x", "y")
    for item in range(30)
    for number, option in enumerate(("low", "high"))
)
QUICK = ("--tasks", "300", "--runs", "3", "--engine", "python")


@pytest.fixture
def training(tmp_path: Path) -> str:
    path = tmp_path / "training.toml"
    path.write_text(TRAINING)
    return str(path)


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    path = tmp_path / "recorded.csv"
    path.write_text(TABLE)
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints with --json, read strictly."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def check_against(answer: Any, results: Results) -> None:
    """The document holds exactly what the library found, best first."""
    rows = {row["policy"]: row for row in answer["policies"]}
    assert list(rows) == sorted(results.policies, key=lambda policy: results.mean("regret")[policy])
    sums = (results.measure(name)[:, :, -1] for name in ("expected_reward", "expected_cost"))
    gaps = dict(zip(results.policies, gap(results.best.ratio, *sums), strict=True))
    for policy, row in rows.items():
        assert row["gap"] == gaps[policy]
        for name in ("expected_ratio", "ratio", "loss", "regret"):
            assert row[name] == results.mean(name)[policy]
            assert row[f"{name}_error"] == results.error(name)[policy]


def test_solve_finds_the_best_of_all_choices_and_what_the_rules_lose(
    capsys: pytest.CaptureFixture[str], training: str
) -> None:
    answer = document(capsys, "solve", training, "--tasks", "5000")
    offers = {
        "photos": {"short": (0.8, 10.0), "long": (0.9, 11.0)},
        "texts": {"short": (0.3, 5.0), "long": (0.9, 14.0)},
    }

    def worth(photos: str, texts: str) -> tuple[float, float]:
        pairs = [(0.7, offers["photos"][photos]), (0.3, offers["texts"][texts])]
        return sum(p * r for p, (r, _) in pairs), sum(p * c for p, (_, c) in pairs)

    values = {choice: worth(*choice) for choice in product(("short", "long"), repeat=2)}
    best = max(values, key=lambda choice: values[choice][0] / values[choice][1])
    reward, cost = values[best]
    assert tuple(kind["best_option"] for kind in answer["kinds"]) == best
    assert answer["best_ratio"] == pytest.approx(reward / cost)
    assert (answer["reward_per_task"], answer["cost_per_task"]) == pytest.approx((reward, cost))

    rules = {"per-kind greedy": ("long", "long"), "cheapest option": ("short", "short")}
    for name, choice in [*rules.items(), ("best single option", ("short", "short"))]:
        its_reward, its_cost = values[choice]
        assert answer["rules"][name]["ratio"] == pytest.approx(its_reward / its_cost)
        assert answer["rules"][name]["loss"] == pytest.approx(1 - its_reward / its_cost / (reward / cost))
    assert answer["rules"]["best single option"]["option"] == "short"
    assert answer["bound"] is None  # its costs are Gamma, for which no width holds
    assert answer["provenance"]["worthwhile"] == worthwhile.__version__


def test_solve_gives_the_theorems_bound_for_widths_that_fit_the_noise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "seven-kinds", "--tasks", "5000", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["bound"]
    bound = theorem_bound(read_problem("seven-kinds"), 5000, noise=2.0)  # N(0, 1)
    assert answer == {"tasks": 5000, "noise": 2.0, "gap": bound.gap, "regret": bound.regret}
    assert bound.failure < 1.0
    assert "the theorem promises DOL-RM with noise=2 a ratio at most" in text(capsys, "solve", "seven-kinds")


def test_solve_shows_the_papers_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "solve", "seven-kinds")
    assert "seven-kinds: at best θ* = 2.1087 (2.4250 reward for 1.1500 cost a task)" in shown
    rows = {line.split("  ")[0]: line.split()[-3:] for line in shown.splitlines()}
    assert rows["per-kind greedy"] == ["2.1000", "0.412", "%"]
    assert rows["cheapest option"] == ["2.0682", "1.92", "%"]
    assert rows["s2"][-1] == "a1"  # where greedy errs
    assert shown.split("s2")[1].split()[0] == "a2"


def test_units_are_shown_where_the_problem_has_them(capsys: pytest.CaptureFixture[str], training: str) -> None:
    shown = text(capsys, "solve", training)
    for words in ("AUC/s", "reward (AUC)", "cost (s)", "ratio (AUC/s)"):
        assert words in shown
    simulated = text(capsys, "simulate", training, *QUICK)
    assert "ratio (AUC/s)" in simulated
    assert "regret (AUC)" in simulated


def test_solve_warns_of_a_degenerate_problem_and_the_added_cost_mends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Advice: degenerate" in text(capsys, "solve", "random:train:3")
    mended = document(capsys, "solve", "random:train:3", "--added-cost", "5")
    assert not mended["degenerate"]
    assert mended["best_ratio"] == solve(random_problem("train", 3).with_added_cost(5.0)).ratio


def test_solve_warns_of_rewards_below_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "losses.toml"
    path.write_text('[[kind]]\nname = "x"\narrival = 1.0\noptions = { a = { reward = -1.0, cost = 2.0 } }\n')
    assert "Advice: θ* = -0.5 is not positive" in text(capsys, "solve", str(path))


def test_a_problem_worth_nothing_has_no_share_to_lose(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "nothing.toml"
    path.write_text('[[kind]]\nname = "x"\narrival = 1.0\noptions = { a = { reward = 0.0, cost = 2.0 } }\n')
    assert document(capsys, "solve", str(path))["rules"]["per-kind greedy"]["loss"] is None


def test_solve_keeps_a_floor_at_the_least_cost_and_says_how(capsys: pytest.CaptureFixture[str], training: str) -> None:
    answer, best = document(capsys, "solve", training, "--floor", "0.8"), solve(read_problem(training), floor=0.8)
    assert answer["goal"] == {"goal": "cost", "floor": 0.8, "budget": None}
    assert answer["goal_in_words"] == "least cost with mean reward ≥ 0.8 AUC"
    assert (answer["reward_per_task"], answer["cost_per_task"]) == pytest.approx((0.8, 0.7 * 11 + 0.3 * (5 + 4)))
    assert (answer["ratio"], answer["best_ratio"]) == (best.ratio, solve(read_problem(training)).ratio)
    photos, texts = answer["kinds"]
    assert (photos["shares"], photos["floor"]) == ({"long": 1.0}, None)
    assert texts["shares"] == pytest.approx({"short": 5 / 9, "long": 4 / 9})
    assert (photos["price"], texts["price"]) == pytest.approx((0.6 / 9, 0.6 / 9))
    assert (texts["reward_per_task"], texts["cost_per_task"]) == pytest.approx((0.3 + 0.6 * 4 / 9, 5 + 4))
    assert {name: rule["ratio"] for name, rule in answer["rules"].items()} == pytest.approx(
        {"best ratio": best.best_ratio, "cheapest option": 0.65 / 8.5, "most reward": 0.9 / 11.9}
    )
    assert (answer["infeasible"], answer["advice"], answer["bound"]) == ([], [], None)


def test_solve_shows_a_goal_in_words_and_tables(capsys: pytest.CaptureFixture[str], training: str) -> None:
    shown = text(capsys, "solve", training, "--floor", "0.8")
    assert "training: least cost with mean reward ≥ 0.8 AUC\n0.80000 AUC for 10.400 s a task, a ratio of" in shown
    assert "55.6 % short, 44.4 % long" in shown
    assert "Options are judged by reward − price·cost; the price is 0.066667 AUC/s." in shown
    rows = {line.split("  ")[0]: line.split()[-3:] for line in shown.splitlines()}
    assert rows["this goal"] == ["0.80000", "10.400", "0.076923"]
    assert rows["most reward"] == ["0.90000", "11.900", "0.075630"]


def test_solve_shows_floors_and_prices_of_kinds_that_have_their_own(
    capsys: pytest.CaptureFixture[str], training: str
) -> None:
    answer = document(capsys, "solve", training, "--floor", "texts=0.6")
    assert [kind["floor"] for kind in answer["kinds"]] == [None, 0.6]
    assert [kind["price"] for kind in answer["kinds"]] == [None, pytest.approx(0.6 / 9)]  # JSON has no infinity
    shown = text(capsys, "solve", training, "--floor", "texts=0.6")
    rows = {line.split("  ")[0]: line.split()[-2:] for line in shown.splitlines()}
    assert (rows["photos"], rows["texts"]) == (["–", "∞"], ["0.6", "0.066667"])
    assert "each kind at its own price; ∞: by the cost alone" in shown


def test_solve_says_that_a_limit_cannot_be_kept_or_makes_no_difference(
    capsys: pytest.CaptureFixture[str], training: str
) -> None:
    shown = text(capsys, "solve", training, "--floor", "photos=0.95")
    assert "Advice: infeasible: floor 0.95 of kind 'photos' cannot be reached: its best option, 'long', brings" in shown
    assert document(capsys, "solve", training, "--budget", "1")["infeasible"][0].startswith("budget 1 cannot be kept")
    shown = text(capsys, "solve", training, "--floor", "0.1")
    assert "The floor makes no difference" in shown
    assert "the price is infinite here: by the cost alone" in shown
    shown = text(capsys, "solve", training, "--budget", "100")
    assert "The budget makes no difference" in shown
    assert "the price is 0 here: by the reward alone" in shown


def test_a_problem_file_may_have_a_goal_and_the_command_line_takes_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("floor = { texts = 0.6 }\n" + TRAINING)
    assert document(capsys, "solve", str(path))["goal"]["floor"] == {"texts": 0.6}
    path.write_text('goal = "ratio"\nfloor = 0.8\nbudget = 12\n' + TRAINING)
    answer = document(capsys, "solve", str(path))
    assert answer["goal"] == {"goal": "ratio", "floor": 0.8, "budget": 12.0}
    assert answer["ratio"] == solve(read_problem(path)).ratio < answer["best_ratio"]
    assert document(capsys, "solve", str(path), "--budget", "9")["goal"] == {
        "goal": "reward",
        "floor": None,
        "budget": 9,
    }
    assert document(capsys, "solve", str(path), "--goal", "ratio")["goal"]["floor"] is None


def test_a_simulation_has_the_default_keep_the_goal_of_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, training: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("floor = 0.8\n" + TRAINING)
    simulated = [document(capsys, "simulate", name, *QUICK, "--policy", "oracle") for name in (str(path), training)]
    assert simulated[0]["best_ratio"] == simulated[1]["best_ratio"]
    assert simulated[0]["goal"] == {"goal": "cost", "floor": 0.8, "budget": None}
    [policy] = simulated[0]["policies"]
    assert policy["missed_by"] == pytest.approx(max(0.0, 1.0 - policy["reward_per_task"] / 0.8))
    assert text(capsys, "simulate", str(path), *QUICK, "--policy", "oracle").count("least cost with mean reward")


def test_solve_takes_the_means_of_a_recorded_table(capsys: pytest.CaptureFixture[str], recorded: str) -> None:
    assert document(capsys, "solve", recorded)["best_ratio"] == solve(replay(recorded).problem).ratio


def test_a_long_list_of_kinds_is_cut_for_people_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    rows = "\n".join(f"k{number},1,a,1,1\nk{number},1,b,3,2" for number in range(45))
    path.write_text("task_type,item_id,option,reward,cost\n" + rows)
    assert "… and 5 more kinds" in text(capsys, "solve", str(path))
    assert len(document(capsys, "solve", str(path))["kinds"]) == 45


def test_simulate_prints_what_the_library_finds(capsys: pytest.CaptureFixture[str]) -> None:
    answer = document(capsys, "simulate", "seven-kinds", *QUICK, "--seed", "7", "--delay", "2-9")
    results = simulate(seven_kinds(), USUAL, tasks=300, runs=3, seed=7, delay=(2, 9), engine="python")
    check_against(answer, results)
    assert (answer["tasks"], answer["runs"], answer["best_ratio"]) == (300, 3, solve(seven_kinds()).ratio)
    assert answer["rules"]["per-kind greedy"]["ratio"] == pytest.approx(2.1)
    assert answer["provenance"]["seed"] == 7
    assert answer["provenance"]["delay"] == [2, 9]


def test_the_table_has_the_same_numbers_best_first(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "simulate", "two-kinds-0.8", *QUICK).splitlines()
    results = simulate(two_kinds(0.8), USUAL, tasks=300, runs=3, engine="python")
    rows = [line.split() for line in shown[4 : 4 + len(USUAL)]]
    regrets = [float(row[5]) for row in rows]
    assert regrets == sorted(regrets)
    assert {row[0] for row in rows} == set(USUAL)
    for policy, ratio, realised, lost, lost_error, regret, regret_error in rows:
        assert float(ratio) == pytest.approx(results.mean("expected_ratio")[policy], rel=1e-4)
        assert float(realised) == pytest.approx(results.mean("ratio")[policy], rel=1e-4)
        assert float(lost) == pytest.approx(100 * results.mean("loss")[policy], abs=float(lost_error) / 10)
        assert float(lost_error) == pytest.approx(100 * results.error("loss")[policy], rel=0.05)
        assert float(regret) == pytest.approx(results.mean("regret")[policy], abs=float(regret_error) / 10)
        assert float(regret_error) == pytest.approx(results.error("regret")[policy], rel=0.05)
    assert "optimum θ* = 2.6000; per-kind greedy 2.5000 (loses 3.85 %)" in shown


def test_one_run_has_no_error_bars(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("simulate", "two-kinds-0.6", "--tasks", "50", "--runs", "1", "--engine", "python")
    assert document(capsys, *arguments)["policies"][0]["regret_error"] is None
    assert text(capsys, *arguments).splitlines()[4].split()[-1] == "–"


def test_all_means_every_policy_on_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    answer = document(capsys, "simulate", "seven-kinds", *QUICK, "--policy", "all", "--policy", "dol-rm,noise=0.5")
    assert {row["policy"] for row in answer["policies"]} == {*LIST, "dol-rm,noise=0.5"}
    assert answer["policies"][0]["policy"] == "optimum"


def test_a_random_problem_is_named_by_family_and_seed(capsys: pytest.CaptureFixture[str]) -> None:
    answer = document(capsys, "simulate", "random:unit:3", *QUICK)
    check_against(answer, simulate(random_problem("unit", 3), USUAL, tasks=300, runs=3, engine="python"))


def test_then_makes_the_problem_drift(capsys: pytest.CaptureFixture[str]) -> None:
    answer = document(capsys, "simulate", "two-kinds-0.8", "--then", "two-kinds-0.2@150", *QUICK)
    world = drifting([(0, two_kinds(0.8)), (150, two_kinds(0.2))])
    check_against(answer, simulate(world, USUAL, tasks=300, runs=3, engine="python"))
    assert answer["problem"] == "two-kinds-0.8 then two-kinds-0.2@150"
    stages = [solve(two_kinds(share)) for share in (0.8, 0.2)]  # half of the tasks each
    whole = sum(stage.reward for stage in stages) / sum(stage.cost for stage in stages)
    assert answer["best_ratio"] == pytest.approx(whole, rel=1e-12)


def test_replay_tries_policies_on_a_recorded_table(capsys: pytest.CaptureFixture[str], recorded: str) -> None:
    answer = document(capsys, "replay", recorded, "--added-cost", "0.5", "--cost-unit", "s", *QUICK)
    check_against(answer, simulate(replay(recorded, 0.5), USUAL, tasks=300, runs=3, engine="python"))
    assert answer["units"]["cost"] == "s"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_out_saves_every_run_with_its_provenance(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / "new folder" / f"runs{suffix}"
    assert main(["simulate", "seven-kinds", *QUICK, "--policy", "oracle", "--seed", "5", "--out", str(path)]) == 0
    assert f"saved {path}" in capsys.readouterr().err
    results = simulate(seven_kinds(), ["oracle"], tasks=300, runs=3, seed=5, engine="python")
    if suffix == ".csv":
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        regrets = [float(row["regret"]) for row in rows]
        about = json.loads(path.with_name("runs.csv.about.json").read_text())
    else:
        table = pyarrow.parquet.read_table(path)
        regrets = table["regret"].to_pylist()
        about = json.loads(table.schema.metadata[b"worthwhile"])
    assert regrets == results.measure("regret").ravel().tolist()
    assert (about["seed"], about["problem"]) == (5, "seven-kinds")


def test_policies_lists_all_of_them_with_what_they_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    policies = {row["policy"]: row for row in document(capsys, "policies")["policies"]}
    assert list(policies) == list(LIST)
    assert policies["dol-rm"]["told"] == ["horizon", "reward_max", "cost_min", "price_min", "price_max"]
    assert policies["dol-rm"]["parameters"] == {"anytime": False, "noise": 1.0, "explore_first": False}
    assert policies["dol-rm-anytime"]["parameters"]["anytime"] is True
    assert (policies["ratio-imed"]["told"], policies["ratio-imed"]["default"]) == ([], True)
    shown = text(capsys, "policies")
    for name, listed in LIST.items():
        assert f"{name} " in shown
        assert listed.summary in shown
    assert "may be set: noise=1.0" in shown


def test_every_command_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["solve"], ["simulate"], ["replay"]):
        with suppress(SystemExit):
            assert main([*arguments, "--help"]) == 0
        assert "examples:\n  worthwhile " in capsys.readouterr().out


def test_the_problem_file_in_the_help_can_be_used_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["solve", "--help"])
    shown = capsys.readouterr().out
    path = tmp_path / "problem.toml"
    path.write_text(shown[shown.index("  units =") : shown.index("examples:")])
    assert document(capsys, "solve", str(path))["units"]["ratio"] == "AUC/s"


def test_every_example_in_the_help_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    top = parser()
    texts = [top.epilog, *(command.epilog for command in top._subparsers._group_actions[0].choices.values())]
    lines = [line.strip() for help_text in texts if help_text for line in help_text.splitlines()]
    examples = [shlex.split(re.split("   | < ", line)[0])[1:] for line in lines if line.startswith("worthwhile ")]
    assert len(examples) > 10
    for example in examples:
        assert top.parse_args(example).command == example[0]


def test_the_module_is_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["worthwhile", "solve", "two-kinds-0.6"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("worthwhile", run_name="__main__")
    assert end.value.code == 0
    assert "θ* = 2.2000" in capsys.readouterr().out


def test_an_export_with_failures_is_solved_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    rows = ["x,1,good,1,2,result", "x,2,good,,1,failed", "x,3,broken,,0.000005,failed", "y,4,good,,1,lost"]
    path.write_text("\n".join(["task_type,item_id,option,reward,cost,outcome", *rows]))
    assert document(capsys, "solve", str(path))["best_ratio"] == pytest.approx(1.0 / 3.0)
    assert main(["replay", str(path), "--tasks", "200", "--runs", "2", "--engine", "python"]) == 0
    told = capsys.readouterr()
    assert "nan" not in told.out
    policies = ["--policy", "fixed-option,option=broken", "--policy", "fixed-option,option=good"]
    found = document(capsys, "replay", str(path), "--tasks", "200", "--runs", "2", "--engine", "python", *policies)
    assert [line["policy"] for line in found["policies"]] == policies[-1::-2]  # though it failed at no cost to speak of
    assert told.err.splitlines() == [
        "worthwhile: tasks: nothing of kind 'y' ever succeeded, so no option can be best there; left out"
    ]
