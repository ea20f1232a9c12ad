"""Celery tasks whose option is chosen when they are sent, run by real workers."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from waiting import NET
from worthwhile import Scheduler
from worthwhile.errors import BadParameter, StoreError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "celery_epochs.py"

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # Celery's own


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    with Scheduler(tmp_path / "tasks.db", policy="random-option", seed=1) as scheduler:
        yield scheduler


@pytest.fixture(scope="module")
def app() -> Iterator[Any]:
    """With a worker in a thread, that takes messages from memory; it knows the task that was there when it started."""
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    from worthwhile.integrations.celery import Decided

    app = Celery("here", broker="memory://", backend="cache+memory://")
    app.conf.update(worker_hijack_root_logger=False, broker_transport_options={"polling_interval": 0.01})
    app.task(work, base=Decided, bind=True, name="train", typing=False)
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=NET):
        yield app


def work(task: Any, *args: Any, **kwargs: Any) -> Any:
    return type(task).body(*args, **kwargs)


def decided(app: Any, scheduler: Any, body: Any, **more: Any) -> Any:
    """A task with three options, that does this when it runs."""
    task = app.tasks["train"]
    settings = {"options": [1, 5, 10], "scheduler": lambda: scheduler, "usual": None, "body": body} | more
    for name, value in settings.items():
        setattr(type(task), name, value)
    return task


def test_the_example_prints_what_it_says_and_the_page_shows_it() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=NET, check=True)
    assert done.stderr == ""
    page = (ROOT / "docs" / "integrations" / "celery.md").read_text(encoding="utf-8")
    assert f"```console\n$ python examples/celery_epochs.py\n{done.stdout}```" in page
    [part] = page.partition("<!-- not run: a part of celery_epochs.py -->\n```python\n")[2].split("```")[:1]
    assert part in EXAMPLE.read_text(encoding="utf-8")


def test_the_task_is_decided_when_it_is_sent_and_reported_by_the_worker(app: Any, scheduler: Scheduler) -> None:
    task = decided(app, scheduler, lambda seed, option: [0.5, option])
    sent = [task.delay(seed) for seed in range(6)]
    costs = {result.id: result.get(timeout=NET)[1] for result in sent}
    lines = {line.key: line for line in scheduler.latest()}
    assert {key: line.option for key, line in lines.items()} == costs
    assert {(line.state, line.kind, line.reward) for line in lines.values()} == {("reported", "train", 0.5)}


def test_a_reward_alone_costs_the_seconds_that_it_took(app: Any, scheduler: Scheduler) -> None:
    decided(app, scheduler, lambda option: 0.5).delay().get(timeout=NET)
    [line] = scheduler.latest()
    assert (line.state, line.reward) == ("reported", 0.5)
    assert line.cost > 0.0


def test_what_raises_has_failed(app: Any, scheduler: Scheduler) -> None:
    result = decided(app, scheduler, lambda option: 1 / 0).delay()
    with pytest.raises(ZeroDivisionError):
        result.get(timeout=NET)
    [line] = scheduler.latest()
    assert (line.state, line.reason) == ("failed", "ZeroDivisionError: division by zero")


def test_what_is_tried_again_takes_another_option(app: Any, scheduler: Scheduler) -> None:
    taken = []

    def run(option: int) -> float:
        taken.append(option)
        try:
            return 1.0 / (len(taken) > 4)
        except ZeroDivisionError as error:
            raise task.retry(exc=error, countdown=0, max_retries=9) from None

    task = decided(app, scheduler, run)
    task.delay().get(timeout=NET)
    [line] = scheduler.latest()
    assert sorted(taken[:3]) == [1, 5, 10]
    assert taken[2:] == [taken[2]] * 3  # nothing is left that has not failed: it goes on, and is not reported
    assert (line.attempts, line.state, line.reason) == (3, "failed", "ZeroDivisionError: float division by zero")


def test_the_same_id_is_the_same_task(app: Any, scheduler: Scheduler) -> None:
    task = decided(app, scheduler, lambda option: (0.5, option))
    results = [task.apply_async(task_id="job 17").get(timeout=NET) for _ in range(3)]
    assert len({tuple(result) for result in results}) == 1
    assert [line.key for line in scheduler.latest()] == ["job 17"]


def test_an_option_of_ones_own_is_not_decided(app: Any, scheduler: Scheduler) -> None:
    assert decided(app, scheduler, lambda option: option).delay(option=5).get(timeout=NET) == 5
    assert scheduler.latest() == []


class Away(Scheduler):
    def decide(self, *arguments: Any, **named: Any) -> Any:
        raise StoreError("the disk is full")


def test_without_a_scheduler_the_usual_option_is_sent_or_nothing(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with Away() as scheduler:
        task = decided(app, scheduler, lambda option: option, usual=5)
        assert task.delay().get(timeout=NET) == 5
        with pytest.raises(StoreError, match="the disk is full"):
            decided(app, scheduler, lambda option: option).delay()
    assert "takes its usual option: the disk is full" in caplog.text


def test_a_reward_that_is_none_is_logged_and_the_result_stays(
    app: Any, scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    assert decided(app, scheduler, lambda option: "fine").delay().get(timeout=NET) == "fine"
    assert "what came of it could not be stored" in caplog.text
    assert scheduler.latest()[0].state == "running"


def test_a_task_without_options_says_what_it_needs(app: Any, scheduler: Scheduler) -> None:
    with pytest.raises(BadParameter, match="it needs options= and scheduler="):
        decided(app, scheduler, lambda option: 1.0, options=[]).delay()
