"""Faces: what a type checker and `dir` tell a user about the public names, while importing them stays quick."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import worthwhile
import worthwhile.live.scheduler  # a module that was loaded shows up in the package

ROOT = Path(__file__).parents[1]
NEED_EXTRA = {"AsyncClient", "Client"}
NAMES = sorted({*worthwhile.__all__, *NEED_EXTRA})
CODE = """
import worthwhile
from worthwhile import AsyncClient, AsyncScheduler, AsyncTask, Client, Outcome, Scheduler, Task
from worthwhile import measure, replay, seven_kinds, simulate, solve, work

scheduler = Scheduler("sqlite:///tasks.db", name="nightly", lease=60.0)
task: Task = scheduler.decide("weather", options=[1, 5, 10], key="a")
task.report(reward=0.9, cost=3.2)
ratio: float | None = scheduler.summary().ratio
elsewhere: Task = Client("http://localhost:8080", token="t").decide("weather", [1, 5, 10])
best: float = solve(seven_kinds()).ratio
losses: dict[str, float] = simulate(seven_kinds(), ["dol-rm"], tasks=100, runs=2).mean("loss")
world: worthwhile.Environment = replay("records.csv", added_cost=1.0)
with measure() as spent:
    outcome = Outcome(0.9, spent.cost)


def train(kind: str, option: int, payload: object) -> float:
    return 0.5


async def on_a_loop(on_loop: AsyncScheduler, afar: AsyncClient) -> float | None:
    async with on_loop.task("weather", options=[1, 5, 10]) as held, on_loop:
        held.reward = 0.9
    decided: AsyncTask = await afar.decide("weather", [1, 5, 10], key="a")
    await decided.report(0.9, cost=3.2)
    return (await AsyncScheduler("sqlite:///tasks.db", lease=60.0).summary()).ratio


done: int = work(scheduler, [("weather", [1, 5, 10])], train, timeout=60.0).reported

Scheduler(lease="long")  # wrong: the type of an argument
solve("seven-kinds")  # wrong: a name where a Problem is due
task.opton  # wrong: an attribute of a Task
scheduler.decid("weather", [1])  # wrong: the name of a method
scheduler.report("1", rewards=0.9)  # wrong: a keyword
Client(tocken="t")  # wrong: a keyword of a class with an extra
simulate(seven_kinds(), task=100)  # wrong: a keyword of a function
replay("records.csv").solve()  # wrong: a method of what is returned
ratio_now: float = scheduler.summary().ratio  # wrong: there may be none yet
work(scheduler, [("weather", [1])], "train")  # wrong: text where a function is due
work(Client(), [("weather", [1])], train)  # wrong: a Client, which cannot claim what it runs
spent.costs  # wrong: an attribute of a stopwatch
worthwhile.Schedular  # wrong: a public name


async def wrongly(on_loop: AsyncScheduler, afar: AsyncClient) -> None:
    AsyncScheduler(lease="long")  # wrong: the type of an argument
    await on_loop.report("1", rewards=0.9)  # wrong: a keyword
    (await afar.decide("weather", [1])).opton  # wrong: an attribute of a task
    (await on_loop.summary()).ratios  # wrong: an attribute of what a thread returns
"""


def checked(file: Path) -> str:
    """What mypy says to a user's file; what it found out about the package is kept for the next time."""
    cache = ROOT / ".mypy_cache" / "of_users"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, file.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        command, cwd=file.parent, env=environment, stdout=subprocess.PIPE, text=True, check=False
    ).stdout


@pytest.mark.slow
def test_a_type_checker_knows_every_public_name_and_reports_every_wrong_call(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    code = CODE + "".join(f"reveal_type(worthwhile.{name})\n" for name in NAMES)
    file.write_text(code, encoding="utf-8")
    said = checked(file)
    wrong = {number for number, line in enumerate(code.splitlines(), 1) if "# wrong" in line}
    assert {int(number) for number in re.findall(r"^user\.py:(\d+): error", said, re.M)} == wrong, said
    types = re.findall(r'Revealed type is "(.*)"$', said, re.M)
    assert len(types) == len(NAMES)
    assert not [name for name, found in zip(NAMES, types, strict=True) if found == "Any"]


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    plain = {name for name in dir(worthwhile) if not name.startswith("__")}
    assert plain | {"__version__"} == set(NAMES)
    assert "__version__" in dir(worthwhile)


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(worthwhile, name) is not None for name in NAMES)
    names: dict[str, object] = {}
    exec("from worthwhile import *", names)
    assert set(names) - {"__builtins__"} == set(NAMES) - NEED_EXTRA
