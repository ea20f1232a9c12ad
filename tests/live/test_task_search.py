"""Looking for tasks: by kind, option, state and time, page by page, in every store."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from worthwhile import Scheduler
from worthwhile.live import task_search
from worthwhile.live.local import Taken, TakingIn
from worthwhile.live.task_search import Found, Wanted, page_of_tasks

TASKS = 60


@pytest.fixture
def scheduler(address: str) -> Any:
    with Scheduler(address, seed=1) as scheduler:
        for number in range(1, TASKS + 1):
            task = scheduler.decide("even" if number % 2 == 0 else "odd", [number % 3, "a"])
            if number % 5 == 0:
                task.fail(1.0)
            elif number % 7:
                task.report(1.0, 1.0)
        yield scheduler


def all_pages(scheduler: Scheduler, wanted: Wanted, count: int) -> list[Found]:
    pages = [page_of_tasks(scheduler._transactor, wanted, count)]
    while (before := pages[-1].following) is not None:
        pages.append(page_of_tasks(scheduler._transactor, wanted, count, before))
    return pages


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(kind="odd"),
        Wanted(option=json.dumps("a")),
        Wanted(option="1"),
        Wanted(state="failed"),
        Wanted(state="running", kind="even"),
        Wanted(state="reported", option="2", within=3600.0),
        Wanted(kind="neither"),
    ],
)
@pytest.mark.parametrize("portion", [7, 500])
def test_every_task_that_is_wanted_is_found_once(
    scheduler: Scheduler, wanted: Wanted, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_search, "PORTION", portion)
    expected = [
        line
        for line in scheduler.latest(TASKS)
        if wanted.kind in (None, line.kind)
        and wanted.option in (None, json.dumps(line.option))
        and wanted.state in (None, line.state)
    ]
    pages = all_pages(scheduler, wanted, 4)
    assert [line for page in pages for line in page.tasks] == expected
    assert all(len(page.tasks) <= 4 for page in pages)


def test_a_long_search_goes_on_where_it_stopped(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_search, "PORTION", 10)
    monkeypatch.setattr(task_search, "MOST_SEARCHED", 20)
    pages = all_pages(scheduler, Wanted(state="failed"), 50)
    assert len(pages) > 2
    assert [line.task for page in pages for line in page.tasks] == [str(each) for each in range(60, 0, -5)]


def test_only_tasks_decided_lately_are_looked_at(scheduler: Scheduler) -> None:
    middle = scheduler.tasks([31])[0].decided
    now = scheduler._transactor.do(lambda batch: batch.header.now)
    first = scheduler._transactor.do(lambda batch: task_search.first_since(batch, batch.header.now - middle))
    assert first == 31
    assert page_of_tasks(scheduler._transactor, Wanted(within=now - middle + 3600.0), TASKS).tasks != []
    assert page_of_tasks(scheduler._transactor, Wanted(within=0.0), TASKS) == Found([], None)


def test_what_was_taken_in_late_hides_no_task_from_a_search_by_time(scheduler: Scheduler) -> None:
    """It has a new number, and was decided long before its neighbours."""
    key, now = f"local-{0:032x}", scheduler._transactor.do(lambda batch: batch.header.now)
    late = Taken(key, "odd", [1], 0, [0], 0.0, 0.0, None, 0, 0, 0.0, 1.0, 7200.0)
    for number in range(TASKS):
        scheduler._transactor.ask(TakingIn(late._replace(key=f"local-{number:032x}")))
    task = scheduler.decide("odd", [1])
    lately = Wanted(within=time.time() - now + 3600.0)
    found = [line.task for page in all_pages(scheduler, lately, 50) for line in page.tasks]
    assert found == [task.id, *map(str, range(TASKS, 0, -1))]
