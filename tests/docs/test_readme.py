"""The README: what it promises in the first five minutes, done as a reader would do it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_docs import blocks

from worthwhile import Scheduler

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = (*sorted(ROOT.glob("docs/jobs/*.md")), ROOT / "docs/examples.md")
SHOWN = "\n".join(page.read_text(encoding="utf-8") for page in EXAMPLES)


def reading_test(name: str) -> str:
    """The code that somebody with this job copies from the README."""
    [code] = re.findall(rf"^<!-- reading test: {name} -->\n```python\n(.*?)^```$", README, re.M | re.S)
    return str(code)


@pytest.fixture
def luck() -> random.Random:
    return random.Random(7)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Where that code runs: an empty folder, and whatever the reader's own program has."""
    monkeypatch.chdir(tmp_path)
    own: dict[str, Any] = {}
    yield own
    own["scheduler"].close()


def done_as_in_the_readme(name: str, names: dict[str, Any]) -> None:
    """Run the reader's code; its scheduler is there already, with a seed, so that every run of the test is the same."""
    code = reading_test(name)
    [made] = re.findall(r"^scheduler = (Scheduler\(.*?)\)", code, re.M)
    eval(f"{made}, seed=3)", {"Scheduler": Scheduler}).close()
    exec(code, names)


def favourites(scheduler: Scheduler) -> dict[str, Any]:
    """The option that each kind mostly gets."""
    kinds = scheduler.summary().kinds
    return {kind.kind: max(kind.options, key=lambda option: option.pulls).option for kind in kinds}


@pytest.mark.parametrize("name", ["solver", "models", "runners"])
def test_each_job_takes_ten_lines_of_the_readers_own(name: str) -> None:
    lines = [line for line in reading_test(name).splitlines() if line.strip() and not line.startswith("from ")]
    assert len(lines) <= 10


def test_a_reader_chooses_time_limits_for_a_solver(names: dict[str, Any], luck: random.Random) -> None:
    seconds = {"easy": {1: 0.9, 10: 1.0, 60: 1.1}, "hard": {1: 1.0, 10: 6.0, 60: 9.0}}
    chance = {"easy": {1: 0.85, 10: 0.87, 60: 0.88}, "hard": {1: 0.1, 10: 0.9, 60: 0.95}}

    def my_solver(instance: Any, time_limit: int) -> Any:
        solved = luck.random() < chance[instance.family][time_limit]
        return SimpleNamespace(solved=solved, seconds=seconds[instance.family][time_limit] * luck.uniform(0.8, 1.2))

    names["my_solver"] = my_solver
    done_as_in_the_readme("solver", names)
    for _ in range(400):
        names["solve"](SimpleNamespace(family=luck.choice(["easy", "hard"])))
    chosen = favourites(names["scheduler"])
    assert chosen["hard"] in (10, 60)  # with 1 s, next to nothing is solved
    shares = {kind.kind: kind.options for kind in names["scheduler"].summary().kinds}
    assert sum(option.share for option in shares["hard"] if option.option == 1) < 0.1


def test_a_reader_gets_four_good_answers_in_five_for_less_than_the_largest_model_costs(
    names: dict[str, Any], luck: random.Random
) -> None:
    good = {"billing": (0.70, 0.85, 0.92), "contracts": (0.20, 0.60, 0.85)}
    dollars = dict(zip(["small", "medium", "large"], (0.001, 0.005, 0.03), strict=True))

    def call_model(model: str, question: Any) -> Any:
        right = luck.random() < good[question.topic][list(dollars).index(model)]
        return SimpleNamespace(right=right, dollars=dollars[model])

    names |= {"call_model": call_model, "is_good": lambda answer: answer.right}
    done_as_in_the_readme("models", names)
    answers = [
        names["ask"](SimpleNamespace(topic=luck.choice(["billing", "billing", "contracts"]))) for _ in range(600)
    ]
    assert sum(answer.right for answer in answers) / len(answers) > 0.78
    assert sum(answer.dollars for answer in answers) / len(answers) < 0.6 * dollars["large"]


def test_a_reader_lets_ci_choose_a_runner(names: dict[str, Any], luck: random.Random) -> None:
    minutes = {
        "unit": {"small": 12.0, "medium": 5.0, "large": 4.5},
        "browser": {"small": 5.0, "medium": 14.0, "large": 5.0},
    }
    price = {"small": 0.8, "medium": 1.6, "large": 6.4}

    def run_on(runner: str, suite: str, commit: str) -> Any:
        took = minutes[suite][runner] * luck.uniform(0.8, 1.2)
        died = (suite, runner) == ("browser", "small") and luck.random() < 0.8
        return SimpleNamespace(died=died, minutes=took, cents=took * price[runner])

    names["run_on"] = run_on
    done_as_in_the_readme("runners", names)
    for number in range(300):
        names["build"](luck.choice(["unit", "browser"]), f"commit {number}")
    assert favourites(names["scheduler"]) == {"unit": "medium", "browser": "large"}
    assert names["scheduler"].summary().failed < 15


def test_deciding_and_reporting_come_first_in_five_lines_and_simulation_later() -> None:
    code = [block.text for block in blocks(ROOT / "README.md") if block.language == "python"]
    first = [line for line in code[0].splitlines() if line.strip()]
    assert len(first) <= 5
    assert "decide" in code[0]
    assert "report" in code[0]
    assert not any("simulate" in text for text in code[:-1])


def test_a_checkout_is_installed_and_nothing_is_promised_from_an_index() -> None:
    assert "pip install ." in README
    assert "pip install worthwhile" not in README
    assert "pip install 'worthwhile" not in README


@pytest.mark.parametrize("name", ["time_limits.py", "model_choice.py", "ci_runners.py", "crowd_workers.py"])
def test_the_numbers_of_a_job_are_those_that_its_example_prints(name: str) -> None:
    [row] = [line for line in README.splitlines() if line.startswith("| **") and line.endswith(f"examples/{name}` |")]
    [output] = re.findall(rf"```console\n\$ python examples/{name}\n(.*?)```", SHOWN, re.S)
    numbers = set(re.findall(r"\d+(?:\.\d+)?%?", row.split(" | ")[1]))
    assert len(numbers) >= 3
    assert numbers <= set(re.findall(r"\d+(?:\.\d+)?%?", output))


def test_the_numbers_of_the_demo_are_those_of_the_run_in_its_picture() -> None:
    report = (ROOT / "docs/measurements/demo.txt").read_text(encoding="utf-8")
    rules = re.findall(r"^(\w.*?) {2,}([\d.]+)(?: +([\d.]+) ×)?$", report, re.M)
    ratios = {name: (round(float(ratio), 2), times) for name, ratio, times in rules}
    for rule in ("greedy per kind", "always shortest", "always longest"):
        assert f"{ratios[rule][1]} ×" in README
    for rule in ("achieved", "always shortest", "always longest"):
        assert f" {ratios[rule][0]:.2f}" in README
