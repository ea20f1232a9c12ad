"""One browser, and one service with schedulers of every sort, for all tests of the dashboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from featured import solve
from service_process import ServiceProcess, store_at
from waiting import NET
from worthwhile import Scheduler
from worthwhile.live.requests import Deciding, Reporting

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1280,1000",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
REMEDY = "no {}; install it: apt-get install chromium chromium-driver, or your system's packages of these names"


def program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    assert found is not None, REMEDY.format(names[0])
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    one = webdriver.Chrome(options, Service(program("chromedriver")))
    one.set_script_timeout(NET)
    yield one
    one.quit()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    store = store_at(tmp_path_factory.mktemp("browser"))
    with Scheduler(store, "busy") as scheduler:
        fill(scheduler, 20_000)
    with Scheduler(store, "wide") as scheduler:
        asked = [Deciding(scheduler, f"kind {kind}", [option]) for kind in range(100) for option in range(30)]
        scheduler._transactor.ask_all(asked)
    with Scheduler(store, "failing", seed=0) as scheduler:
        fail_often(scheduler)
    with Scheduler(store, "featured") as scheduler:
        use_features(scheduler)
    with Scheduler(store, "by features", seed=3) as scheduler:
        solve(scheduler, 400)
    units = {"reward_unit": "right answers", "cost_unit": "cents"}
    with Scheduler(store, "with a floor", seed=1, floor=0.7, **units) as scheduler:
        solve(scheduler, 100)
    with Scheduler(store, "changed", seed=1) as scheduler:
        drift(scheduler, 600)
    with ServiceProcess(store, "--no-access-log") as running:
        yield running


def drift(scheduler: Scheduler, tasks: int) -> None:
    """What was best is not any more, half of the way on."""
    for start in range(0, tasks, 50):
        asked = [Deciding(scheduler, "a", ["old", "new"]) for _ in range(50)]
        scheduler._transactor.ask_all(asked)
        worth = {"old": 2.0 if start < tasks / 2 else 1.2, "new": 1.0}
        reports = [
            Reporting(one.answer.id, worth[one.answer.option] + place % 5 / 50, 1.0) for place, one in enumerate(asked)
        ]
        scheduler._transactor.ask_all(reports)


def fail_often(scheduler: Scheduler) -> None:
    """Options that never, sometimes and always fail, and a kind in which nothing works."""
    for place in range(60):
        task = scheduler.decide("weather", ["good", "so-so", "broken"])
        if task.option == "broken" or (task.option == "so-so" and place % 2):
            task.fail(0.5, f"KeyError: {'no such column ' * 5}")
        else:
            task.report(1.0, 1.0)
    for _ in range(5):
        scheduler.decide("impossible", ["a", "b"]).fail(1.0, "TimeoutError")
    scheduler.decide("impossible", ["a", "b"], key="twice").fail(1.0, "TimeoutError")
    scheduler.again("66")


def use_features(scheduler: Scheduler) -> None:
    """Nearly as much as features may be, with names and texts that have no place to break a line."""
    many = {f"feature {place}": place for place in range(150)}
    known = many | {"x" * 200: "y" * 200, "<b>bold</b>": "<script>alert(1)</script>", "gpu": True}
    scheduler.decide("sat", ["kissat", "minisat"], features=known).report(1.0, 2.0)


def fill(scheduler: Scheduler, tasks: int) -> None:
    """So many tasks, in large batches."""
    for _ in range(tasks // 2000):
        asked = [Deciding(scheduler, f"kind {place % 3}", [1, 5, 10]) for place in range(2000)]
        scheduler._transactor.ask_all(asked)
        rows = [(one.answer.id, one.answer.option) for one in asked]
        reports = [Reporting(id, int(id) % 7 / 7 + option / 10, 1.0 + option) for id, option in rows]
        scheduler._transactor.ask_all(reports)
