"""At every row of the table of limits in docs/live.md: the last value that is taken, and the first that is refused."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tampering import execute
from worthwhile import Scheduler
from worthwhile.errors import BadFeedback, BadParameter, BadTask
from worthwhile.live.checking import find_damage
from worthwhile.live.fold import MOST_CELLS

REPORTS = int(os.environ.get("REPORTS_AT_THE_LIMIT", "300"))
PAGE = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8")


def test_the_table_of_limits_is_the_one_that_is_tested_here() -> None:
    rows = [line for line in PAGE.split("## Limits")[1].split("\n\n")[1].splitlines() if line.startswith("| ")]
    assert [re.split(r" *\| *", row)[2] for row in rows[1:]] == [
        "1 000",
        "16 777 216",
        "200 bytes of UTF-8",
        "256",
        "1 024, the first",
        "2 GB",
        "4 096 bytes",
        "from −1e100 to 1e100, finite",
        "from −1e100 to 1e100",
        "from 1e-100 to 1e100",
        "2⁴⁸ − 1",
        "30 to 35 s, then `StoreError`",
    ]


def test_a_thousand_options_long_names_and_the_largest_numbers_are_kept(durable: str) -> None:
    kind, options = "é" * 100, list(range(1000))
    with Scheduler(durable) as scheduler:
        scheduler.decide(kind, options, key="k" * 200).report(1e100, 1e-100)
        scheduler.decide(kind, ["o" * 198]).report(-1e100, 1e100)
        for wrong in ([*options, "more"], ["o" * 199]):
            with pytest.raises(BadTask):
                scheduler.decide(kind, wrong)
        for name, key in ((kind + "é", None), ("x", "k" * 201)):
            with pytest.raises(BadTask, match="at most 200 are allowed"):
                scheduler.decide(name, options, key=key)
        for reward, cost in ((1.01e100, 1.0), (-1.01e100, 1.0), (0.0, 1.01e100), (0.0, 0.99e-100)):
            with pytest.raises(BadFeedback):
                scheduler.decide(kind, options).report(reward, cost)
    with Scheduler(durable) as scheduler:
        assert scheduler.summary().reports == 2
        assert scheduler.decide(kind, options, key="k" * 200).id == "1"
        assert scheduler.rebuild()
    assert find_damage(durable).damage == []


def test_as_many_features_as_long_and_as_large_as_they_can_be_are_kept(durable: str) -> None:
    many = {f"x{number}": number for number in range(254)}
    large = {"é" * 100: 1e100, "x1": -(10**100), "x2": "é" * 100}
    long = {"x1": "a" * 200, "x2": 0, **{f"x{number}": "b" * 180 for number in range(100, 120)}, "x3": ""}
    long["x3"] = "c" * (4096 - len(json.dumps(long)))
    with Scheduler(durable) as scheduler:
        for features in (many, large, long):
            scheduler.decide("x", [1, 2], features=features).report(1.0, 1.0)
        scheduler.decide("x", [1, 2], features={"x256th": True})
        for wrong in (
            {"x257th": 1},
            long | {"x3": f"{long['x3']}c"},
            {"é" * 101: 1},
            {"x1": "é" * 101},
            {"x1": 1.1e100},
        ):
            with pytest.raises(BadTask):
                scheduler.decide("x", [1, 2], features=wrong)
    with Scheduler(durable) as scheduler:
        assert [line.features for line in scheduler.latest()] == [{"x256th": True}, long, large, many]
        assert scheduler.rebuild()
    assert find_damage(durable).damage == []


def test_features_say_something_of_the_first_options_and_more_of_them_do_no_harm(sqlite: str) -> None:
    """A forest for all of these would take 450 MB, and fifteen gigabytes for 100,000."""
    with Scheduler(sqlite, seed=1) as scheduler:
        scheduler.announce(["x"], list(range(3000)))
        for number in range(200):  # options 1023 and 1024 are each best for every other task
            task = scheduler.decide("x", [0, 1023, 1024], features={"odd": number % 2})
            task.report(float(task.option == 1023 + number % 2) + 0.1, 1.0)
        fold = scheduler._transactor.replica.fold
        assert fold.state.learned.forest.trees.weight.shape[1] == 1024
        assert fold.state.learned.forest.rows.option[:200].max() == 1023
        assert fold.bytes < 200_000_000
        chosen = {line.option for line in scheduler.latest(30) if line.features == {"odd": 0}}
        assert 1023 in chosen
        assert scheduler.explain(200).repeated
        assert scheduler.rebuild()


def test_a_policy_that_takes_too_much_memory_is_refused_before_anything_is_changed(sqlite: str) -> None:
    with Scheduler(sqlite, seed=1) as scheduler:
        scheduler.announce(["x"], list(range(100_000)))
        scheduler.change(policy="linear-ts")  # without features it takes little
        scheduler.change(policy="ratio-imed")
        scheduler.decide("x", [0, 99_999], features={"odd": 1}).report(1.0, 1.0)
        with pytest.raises(BadParameter, match=r"linear-ts.*: this scheduler has 100,000 options.* GB of memory"):
            scheduler.change(policy="linear-ts")
        scheduler.change(policy="ratio-imed,half_life=5000")
        scheduler.decide("x", [0, 99_999], features={"odd": 1}).report(1.0, 1.0)
    with Scheduler(sqlite) as scheduler:
        assert scheduler.summary().policy == "ratio-imed,half_life=5000.0"


def test_the_last_task_there_can_be_is_decided_and_reported_and_the_next_is_refused(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        scheduler.decide("x", [1, 2])
        execute(durable, f"update schedulers set tasks = {2**48 - 2}")
        last = scheduler.decide("x", [1, 2])
        assert last.id == str(2**48 - 1)
        with pytest.raises(BadTask, match=r"281,474,976,710,655 tasks.* use another scheduler"):
            scheduler.decide("x", [1, 2])
        last.report(1.0, 1.0)
    with Scheduler(durable) as scheduler:
        assert scheduler.summary().reports == 1
        assert scheduler.explain(last).repeated
        assert scheduler.rebuild()


@pytest.mark.slow
def test_a_scheduler_with_as_many_cells_as_there_can_be_goes_on_learning(sqlite: str) -> None:
    """Two gigabytes, for a while; a snapshot of it once was more than a row of SQLite can hold."""
    with Scheduler(sqlite, seed=1) as scheduler:
        scheduler.announce([f"kind {number}" for number in range(16_384)], list(range(1024)))
        fold = scheduler._transactor.replica.fold
        assert fold.size.kinds * fold.size.options == MOST_CELLS
        with pytest.raises(BadTask, match="use names that come again, or several schedulers"):
            scheduler.decide("one kind more", [0])
        for number in range(REPORTS):
            options = [(31 * number + 97 * other) % 1024 for other in range(5)]
            scheduler.decide(f"kind {7919 * number % 16_384}", options).report(0.5 + number % 3, 1.0 + number % 5)
            if number % (REPORTS // 2) == 100:
                scheduler._transactor.do(lambda batch: batch.replica.want_snapshot())
        assert scheduler._transactor.do(lambda batch: batch.replica.saved) > REPORTS // 3
        known = scheduler._transactor.do(lambda batch: batch.replica.fold)
    size = Path(sqlite.removeprefix("sqlite:///")).stat().st_size
    assert size < 20_000_000 + 3000 * REPORTS
    with Scheduler(sqlite) as scheduler:
        assert scheduler._transactor.do(lambda batch: batch.replica.saved) > REPORTS // 3
        assert scheduler._transactor.do(lambda batch: batch.replica.fold.same_as(known))
        assert scheduler.summary().reports == REPORTS
        assert scheduler.explain(REPORTS).repeated
