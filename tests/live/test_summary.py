"""What a summary says and how it prints; the log is read once, a portion at a time, and by nobody twice."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

import apsw
import pytest

from worthwhile import Scheduler
from worthwhile.errors import StoreError
from worthwhile.live import log_statistics

MEANS = {("x", "only"): (3.0, 1.0), ("y", "long"): (3.0, 2.0), ("y", "short"): (1.0, 1.0)}
OFFERED = {"x": ["only"], "y": ["long", "short"]}


def run(scheduler: Scheduler, tasks: int) -> None:
    """The README's two kinds, every fifth task of which is a y."""
    for number in range(tasks):
        kind = "y" if number % 5 == 4 else "x"
        task = scheduler.decide(kind, OFFERED[kind])
        reward, cost = MEANS[kind, str(task.option)]
        task.report(reward + 0.01 * (number % 3 - 1), cost)


def pulls(scheduler: Scheduler) -> float:
    """As counted from the log."""
    return sum(moments[0] for moments in scheduler._transactor.statistics.moments.values())


def test_a_summary_says_who_wins_and_what_simpler_rules_would_have_earned() -> None:
    with Scheduler() as scheduler:
        assert str(scheduler.summary()).splitlines()[1] == "0 tasks, 0 reported, 0 running; 0 of 0 kinds settled"
        run(scheduler, 60)
        once = scheduler.summary().kinds[1]
        scheduler.decide("y", ["long"]).report(3.0, 2.0)
        few = scheduler.summary().comparisons
        for _ in range(3):
            scheduler.decide("y", ["long"]).report(3.0, 2.0)
        scheduler.decide("new", [None, "a"])
        summary = scheduler.summary()
    x, y, new = summary.kinds
    assert (x.winner, x.settled, x.verdict) == ("only", False, "only only has been tried")
    assert (y.winner, y.settled, y.verdict) == ("short", True, "short is clearly best")
    assert once.verdict == "short leads; long has one report only"
    assert not once.settled
    assert (new.winner, new.settled, new.verdict) == (None, False, "nothing reported yet")
    assert [(option.option, option.winning) for option in y.options] == [("short", True), ("long", False)]
    assert [(rule.says, rule.ratio is None) for rule in few] == [
        ("always short; too few tries to tell of long", False),
        ("for each kind alone, its best reward per cost; too few tries to tell of long", False),
        ("too few tries to tell of long", True),
    ]
    assert [(rule.rule, rule.says) for rule in summary.comparisons] == [
        ("best single option", "always short"),
        ("per-kind greedy", "for each kind alone, its best reward per cost"),
        ("random", "any option that has succeeded, equally often"),
    ]
    single, greedy, random = (rule.ratio for rule in summary.comparisons)
    assert single == pytest.approx((48 * 3 + 16 * 1) / (48 + 16), rel=0.01)
    assert greedy == pytest.approx((48 * 3 + 16 * 3) / (48 + 16 * 2), rel=0.01)
    assert random == pytest.approx((48 * 3 + 16 * 2) / (48 + 16 * 1.5), rel=0.01)
    for rule in summary.comparisons:
        assert rule.low is not None
        assert rule.high is not None
        assert rule.low < (rule.ratio or 0.0) < rule.high
    text = str(summary)
    assert "65 tasks, 64 reported, 1 running; 1 of 3 kinds settled" in text
    assert "short ★" in text
    assert "settled: short is clearly best" in text
    assert "best single option: always short" in text


def test_a_notebook_shows_tables_and_no_markup_of_others() -> None:
    with Scheduler(name="<b>") as scheduler:
        for _ in range(30):
            scheduler.decide("<script>", ["<i>"], lease=0)
        scheduler.decide("<script>", ["<i>"]).report(1.0, 2.0)
        page = scheduler.summary()._repr_html_()
    assert page.count("<table>") == page.count("</table>") == 2
    assert "&lt;script&gt;" in page
    assert not any(markup in page for markup in ("<script>", "<i>", "<b>"))
    assert "<li>Not reported when the lease ended: 30 tasks (97%).</li>" in page


def test_the_log_is_read_in_portions_and_only_once(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler(durable) as scheduler:
        run(scheduler, 50)
        at_once = scheduler.summary()
        points = scheduler._transactor.statistics.series(10)
    monkeypatch.setattr(log_statistics, "PORTION", 7)
    read: list[int] = []
    take = log_statistics.LogStatistics.take

    def counted(self: Any, rows: Any, *known: Any) -> None:
        read.append(len(rows))
        take(self, rows, *known)

    monkeypatch.setattr(log_statistics.LogStatistics, "take", counted)
    with Scheduler(durable) as scheduler:
        assert scheduler.summary() == at_once
        assert read == [7] * 7 + [1]
        assert scheduler._transactor.statistics.series(10) == points
        scheduler.decide("x", ["only"]).report(3.0, 1.0)
        assert scheduler.summary().reports == 51
        assert read[8:] == [0, 1]
    assert points[-1].reports == 50
    assert points[-1].ratio == pytest.approx(at_once.ratio)
    assert None not in [point.decided for point in points]


def test_a_summary_that_is_interrupted_leaves_nothing_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler() as scheduler:
        run(scheduler, 20)
        rows, record = iter(range(9)), log_statistics.one_more

        def interrupted(*given: Any, **weighed: Any) -> Any:
            if next(rows, None) is None:
                raise KeyboardInterrupt
            return record(*given, **weighed)

        monkeypatch.setattr(log_statistics, "one_more", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scheduler.summary()
        monkeypatch.undo()
        again = scheduler.summary()
        assert sum(option.pulls for kind in again.kinds for option in kind.options) == 20
        assert pulls(scheduler) == 20


def test_nobody_waits_for_themselves() -> None:
    """Neither a policy or signal handler in the middle of a batch that a reader of the log waits for, nor a reader."""
    with Scheduler() as scheduler:
        run(scheduler, 5)
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with scheduler._transactor.statistics.lock:
                held.set()
                done.wait(60)

        reader = threading.Thread(target=hold)
        reader.start()
        assert held.wait(60)
        with pytest.raises(StoreError, match="in the middle of using the scheduler"):
            scheduler._transactor.do(lambda batch: scheduler.summary())
        done.set()
        reader.join(60)
        with (
            scheduler._transactor.statistics.followed(lambda batch: None),
            pytest.raises(StoreError, match="in the middle"),
        ):
            scheduler.summary()
        assert scheduler.summary().reports == 5


def test_threads_that_ask_at_once_all_get_the_same(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        run(scheduler, 200)
    with Scheduler(durable) as scheduler:
        found: list[Any] = []
        threads = [threading.Thread(target=lambda: found.append(scheduler.summary())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == [scheduler.summary()] * 8


def test_a_store_that_was_put_back_is_read_again(sqlite: str) -> None:
    with Scheduler(sqlite) as scheduler:
        run(scheduler, 10)
        assert scheduler.summary().reports == 10
        connection = apsw.Connection(sqlite.removeprefix("sqlite:///"))
        connection.execute("delete from reports where number > 4; update schedulers set reports = 4")
        connection.close()
        assert scheduler.summary().reports == 4
        assert pulls(scheduler) == 4


def test_numbers_at_the_limits_leave_nothing_that_json_cannot_say() -> None:
    with Scheduler(overhead=1e100) as scheduler:
        for _ in range(3):
            for reward, cost in ((1e100, 1e-100), (-1e100, 1e100)):
                scheduler.decide("a", [1, 2]).report(reward, cost)
        summary = scheduler.summary()
        assert summary.comparisons == []
        assert "inf" not in repr(asdict(summary))
        assert "nan" not in repr(asdict(summary))
        assert str(summary)
