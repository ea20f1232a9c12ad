"""The live scheduler, on every store: what it decides, what it counts, what it tells."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tampering import execute, move_clock
from waiting import NET
from worthwhile import Scheduler, Task
from worthwhile import state as states
from worthwhile.decision import Decision
from worthwhile.errors import AlreadyCancelled, AlreadyReported, BadFeedback, BadParameter, BadTask, UnknownTask
from worthwhile.live.transactor import Transactor
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.registry import find
from worthwhile.rng import Rng

OPTIONS = [1, 5, 10]


def run_some(scheduler: Scheduler, count: int, kinds: int = 3) -> list[Task]:
    """Tasks whose reward and cost are functions of task and option."""
    done = []
    for number in range(count):
        task = scheduler.decide(f"kind {number % kinds}", OPTIONS)
        task.report(reward=task.option / 10 + number % 7 / 7, cost=1 + task.option / 4)
        done.append(task)
    return done


def fold_of(scheduler: Scheduler) -> Any:
    return scheduler._transactor.do(lambda batch: batch.replica.fold)


def test_what_is_reported_is_summed_up(address: str) -> None:
    with Scheduler(address, name="training") as scheduler:
        task = scheduler.decide("weather", options=OPTIONS)
        assert task.option in OPTIONS
        task.report(reward=3.0, cost=2.0)
        other = scheduler.decide("weather", options=OPTIONS)
        assert other.option != task.option  # what has not been tried comes first
        found = scheduler.summary()
        assert (found.tasks, found.reports, found.running) == (2, 1, 1)
        assert (found.reward, found.cost, found.ratio) == (3.0, 2.0, 1.5)
        [kind] = found.kinds
        lines = {line.option: line for line in kind.options}
        assert (kind.kind, kind.reports, kind.running) == ("weather", 1, 1)
        assert (lines[task.option].pulls, lines[task.option].share, lines[task.option].running) == (1, 1.0, 0)
        assert (lines[task.option].mean_reward, lines[task.option].mean_cost) == (3.0, 2.0)
        assert (lines[other.option].pulls, lines[other.option].running) == (0, 1)


def test_it_finds_the_option_that_is_worthwhile(address: str) -> None:
    with Scheduler(address, seed=1) as scheduler:
        for number in range(120):
            task = scheduler.decide("x", ["good", "bad"])
            task.report(reward=(2.0 if task.option == "good" else 1.0) + number % 5 / 10, cost=1.0)
        shares = {line.option: line.share for line in scheduler.summary().kinds[0].options}
        assert shares["good"] > 0.8


def test_the_same_key_gives_the_same_task(address: str) -> None:
    with Scheduler(address) as scheduler:
        first = scheduler.decide("x", OPTIONS, key="job 1")
        again = scheduler.decide("x", [7], key="job 1")
        assert (again.id, again.option) == (first.id, first.option)
        assert scheduler.decide("x", OPTIONS, key="job 2").id != first.id
        with pytest.raises(BadTask, match="key 'job 1' belongs to task 1 of kind 'x', not 'y'"):
            scheduler.decide("y", OPTIONS, key="job 1")
        assert scheduler.summary().tasks == 2


def test_a_task_that_its_key_gives_again_says_where_it_stands(address: str) -> None:
    with Scheduler(address) as scheduler:
        tasks = [scheduler.decide("x", OPTIONS, key=key) for key in ("running", "reported", "cancelled")]
        assert {task.state for task in tasks} == {"running"}
        tasks[1].report(reward=1.0, cost=1.0)
        tasks[2].cancel()
        scheduler.decide("x", OPTIONS, key="expired", lease=0.0)
        for state in ("running", "reported", "cancelled", "expired"):
            assert scheduler.decide("x", OPTIONS, key=state).state == state
        assert [line.state for line in reversed(scheduler.latest())] == ["running", "reported", "cancelled", "expired"]


def test_reward_and_cost_may_come_apart(address: str) -> None:
    with Scheduler(address) as scheduler:
        one, other = scheduler.decide("x", OPTIONS), scheduler.decide("x", OPTIONS)
        one.report(reward=2.0)
        other.report(cost=4.0)
        assert scheduler.summary().reports == 0
        assert scheduler.summary().running == 2
        one.report(cost=3.0)
        scheduler.report(other.id, reward=5.0)
        found = scheduler.summary()
        assert (found.reports, found.running, found.reward, found.cost) == (2, 0, 7.0, 7.0)


def test_a_report_counts_once(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", OPTIONS)
        for _ in range(3):
            task.report(reward=0.91, cost=3.2)
        task.report(reward=0.91)
        for reward, cost in ((0.92, 3.2), (0.91, 3.3), (0.92, None), (None, 1.0)):
            with pytest.raises(AlreadyReported, match=r"task 1 already has feedback \(reward 0.91, cost 3.2\)"):
                task.report(reward, cost)
        assert scheduler.summary().reports == 1
        assert scheduler.summary().reward == 0.91


def test_side_observations_move_means_and_nothing_else(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", OPTIONS)
        others = [option for option in OPTIONS if option != task.option]
        for _ in range(2):  # unique per task and option
            for option in others:
                task.observe(option, reward=0.5, cost=2.0)
        with pytest.raises(AlreadyReported, match="already observed"):
            task.observe(others[0], reward=0.6, cost=2.0)
        task.report(reward=1.0, cost=1.0)
        lines = {line.option: line for line in scheduler.summary().kinds[0].options}
        assert [lines[option].observed for option in others] == [1, 1]
        assert scheduler.summary().ratio == 1.0
        learned = fold_of(scheduler).state.learned
        assert learned.arms.pulls.sum() == 3.0
        assert learned.plug_in.arrivals.sum() == 1.0
        assert scheduler.rebuild()


def test_a_cancelled_task_is_no_longer_running_and_takes_no_report(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", OPTIONS)
        task.cancel()
        task.cancel()
        assert scheduler.summary().running == 0
        with pytest.raises(AlreadyCancelled, match="task 1 was cancelled"):
            task.report(reward=1.0, cost=1.0)
        done = run_some(scheduler, 1)[0]
        with pytest.raises(AlreadyReported, match="task 2 has reported already"):
            done.cancel()


def test_tasks_come_in_the_order_in_which_they_are_asked_for(address: str) -> None:
    with Scheduler(address) as scheduler:
        for _ in range(4):
            scheduler.decide("x", OPTIONS)
        scheduler.report("1", reward=1.0, cost=1.0)
        assert [line.task for line in scheduler.tasks(["4", "1", "77", "2", "2"])] == ["4", "1", "2"]


class Counting(RatioImed):
    """Does more with `pending` than index it."""

    def choose(self, state: Any, kind: int, options: Any, pending: Any, rng: Any) -> Decision:
        return Decision(options[int((pending * 2).sum()) % len(options)], 0.0, 1.0)


def test_a_policy_that_computes_with_whole_arrays_gets_arrays() -> None:
    with Scheduler(policy=Counting()) as scheduler:
        assert [scheduler.decide("x", [0, 1, 2, 3, 4]).option for _ in range(5)] == [0, 2, 4, 1, 3]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_remembered_between_reports_is_what_would_be_worked_out_again(seed: int) -> None:
    """Machine code remembers nothing."""
    luck, running = np.random.default_rng(seed), []
    remembering, other = (Scheduler(seed=seed, engine=engine) for engine in ("python", "compiled"))
    for step in range(600):
        if not running or luck.random() < 0.6:
            offers = ([0, 1, 2, 3], [3, 0, 2]) if step < 400 else ([2, 1, 3], [*range(12)])  # the state grows
            kind, options = f"kind {luck.integers(3)}", offers[luck.integers(2)]
            task, twin = (scheduler.decide(kind, options) for scheduler in (remembering, other))
            assert task.option == twin.option
            running.append((task, options))
        else:
            task, options = running.pop(luck.integers(len(running)))
            reward, cost = luck.exponential(1.0, 2).tolist()
            side = next(option for option in options if option != task.option)
            seen = luck.random() < 0.3
            for scheduler in (remembering, other):
                if seen:
                    scheduler.observe(task.id, side, reward, cost)
                else:
                    scheduler.report(task.id, reward, cost)


def test_what_others_did_to_a_task_is_seen_by_who_decided_it(durable: str) -> None:
    """Whoever has written a task need not read it again, unless somebody else has written."""
    with Scheduler(durable) as scheduler, Scheduler(durable) as other:
        for _ in range(3):
            first, second, third = (scheduler.decide("x", OPTIONS) for _ in range(3))
            other.cancel(first.id)
            with pytest.raises(AlreadyCancelled):
                first.report(reward=1.0, cost=1.0)
            other.report(second.id, reward=1.0)
            with pytest.raises(AlreadyReported, match=r"already has feedback \(reward 1\), now reward 2"):
                second.report(reward=2.0, cost=1.0)
            second.report(cost=4.0)
            other.report(third.id, reward=1.0, cost=4.0)
            third.report(reward=1.0, cost=4.0)
        assert (scheduler.summary().reports, scheduler.summary().ratio) == (6, 0.25)
        assert scheduler.rebuild()


def test_a_task_stops_counting_when_its_lease_ends_and_its_late_report_still_counts(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Scheduler(address) as scheduler:
        late = scheduler.decide("x", OPTIONS, lease=1000.0)
        scheduler.decide("x", OPTIONS, lease=10_000.0)
        assert scheduler.summary().running == 2
        move_clock(monkeypatch, scheduler._transactor.store, 1001.0)
        assert scheduler.summary().running == 1
        assert [line.state for line in scheduler.latest()] == ["running", "expired"]
        late.report(reward=1.0, cost=1.0)
        late.report(reward=1.0, cost=1.0)
        assert scheduler.summary().reports == 1


def test_an_overhead_is_part_of_every_cost(address: str) -> None:
    with Scheduler(address, overhead=0.5) as scheduler:
        scheduler.decide("x", OPTIONS).report(reward=3.0, cost=1.0)
        assert scheduler.summary().cost == 1.5
        scheduler.change(overhead=2.0)
        scheduler.decide("x", OPTIONS).report(reward=3.0, cost=1.0)
        assert scheduler.summary().cost == 4.5  # a task keeps the overhead it was decided with
        assert scheduler.rebuild()


def test_options_are_json_scalars_and_all_different(address: str) -> None:
    values = [1, 1.0, "1", True, None, "true", "null", "", "ü\n☃", 'a"; drop table tasks; --', -1e-300, 10**40]
    with Scheduler(address) as scheduler:
        seen = []
        for _ in values:
            task = scheduler.decide("it's; drop table", values)
            task.report(reward=1.0, cost=1.0)
            seen.append((type(task.option), task.option))
        assert len(set(seen)) == len(values)
        assert sorted(map(repr, seen)) == sorted(repr((type(value), value)) for value in values)
        assert scheduler.decide("x", [np.int64(5), np.float64(2.5)]).option == 5


def test_kinds_and_options_may_come_at_any_time(address: str) -> None:
    with Scheduler(address) as scheduler:
        for number in range(40):
            for task in [scheduler.decide(f"kind {number}", [number, number + 1, "same"]) for _ in range(3)]:
                task.report(reward=number, cost=1.0)
        assert scheduler.summary().reports == 120
        assert [kind.kind for kind in scheduler.summary().kinds] == [f"kind {number}" for number in range(40)]
        assert scheduler.rebuild()


def test_a_retired_option_is_never_chosen_until_it_is_restored(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler.retire(5)
        scheduler.retire(10, kind="x")
        assert {scheduler.decide("x", OPTIONS).option for _ in range(5)} == {1}
        assert {scheduler.decide("y", OPTIONS).option for _ in range(5)} == {1, 10}
        with pytest.raises(BadTask, match=r"kind 'x': every option on offer is retired \(5, 10\)"):
            scheduler.decide("x", [5, 10])
        scheduler.restore(5)
        assert scheduler.decide("x", [5, 10]).option == 5
        with pytest.raises(BadTask, match="option 5 is neither retired nor benched"):
            scheduler.restore(5)


def test_a_decision_is_explained_by_what_was_known_then(address: str) -> None:
    with Scheduler(address, seed=4) as scheduler:
        tasks = run_some(scheduler, 60)
        running = scheduler.decide("kind 0", OPTIONS)
        after = scheduler.decide("kind 0", OPTIONS)
        for task in (*tasks, running, after):
            found = scheduler.explain(task)
            assert found.repeated
            assert (found.task, found.kind, found.option) == (task.id, task.kind, task.option)
            assert [one.option for one in found.options if one.chosen] == [task.option]
        assert scheduler.explain(tasks[0].id).why == "it had not been tried with this kind"
        assert scheduler.explain(tasks[0]).options[0].pulls == 0
        last = scheduler.explain(after)
        assert {one.option: one.running for one in last.options}[running.option] == 1
        for one in last.options:
            assert last.price is not None
            assert one.score == one.reward_estimate - last.price * one.cost_estimate
        assert "its score" in last.why


def test_another_policy_learns_from_the_whole_history_by_its_own_judgement(address: str) -> None:
    with Scheduler(address, seed=4) as scheduler:
        tasks = run_some(scheduler, 50)
        key = scheduler._transactor.do(lambda batch: batch.replica.seed_key)
        scheduler.change(policy="running-ratio-dol,horizon=1000,reward_max=2,cost_min=1")
        assert scheduler.summary().policy.startswith("running-ratio-dol")
        policy = find("running-ratio-dol").type(horizon=1000, reward_max=2.0, cost_min=1.0)
        state = policy.init(*fold_of(scheduler).size[:2])
        kinds, options = {f"kind {n}": n for n in range(3)}, {option: n for n, option in enumerate(OPTIONS)}
        for number, task in enumerate(tasks):
            kind, option = kinds[task.kind], options[task.option]
            made = policy.judge(state, kind, option)
            reward, cost = task.option / 10 + number % 7 / 7, 1 + task.option / 4
            policy.learn(state, kind, made, reward, cost, Rng(key, int(task.id)))
        assert states.same(fold_of(scheduler).state.learned, state)
        run_some(scheduler, 20)
        assert scheduler.rebuild()
        assert scheduler.explain(tasks[7]).repeated  # by the policy that decided it
        scheduler.change(policy="ratio-imed")
        assert scheduler.summary().policy == "ratio-imed"
        assert scheduler.rebuild()


def test_processes_learn_from_one_another(durable: str) -> None:
    with Scheduler(durable, seed=1) as one, Scheduler(durable) as other:
        for number in range(30):
            task = (one, other)[number % 2].decide("x", OPTIONS)
            (other, one)[number % 3 % 2].report(task.id, reward=number, cost=1.0)
        assert one.summary() == other.summary()
        assert fold_of(one).same_as(fold_of(other))
        assert one.rebuild()
        assert other.rebuild()
        other.change(policy="random-option")
        other.retire(1)
        other.decide("a new kind", [99])
        assert one.summary().policy == "random-option"
        assert one.decide("x", [1, 5]).option == 5
        assert one.decide("a new kind", [98, 99]).option in (98, 99)
        assert other.summary() == one.summary()


def test_schedulers_of_one_store_do_not_mix(durable: str) -> None:
    with Scheduler(durable, name="one") as one, Scheduler(durable, name="two", policy="random-option") as two:
        mine = one.decide("x", OPTIONS)
        mine.report(reward=1.0, cost=1.0)
        assert two.summary().tasks == 0
        with pytest.raises(UnknownTask):
            two.report(mine.id, reward=1.0, cost=1.0)
        assert two.decide("y", [1], key="k").id == "1"


def test_a_block_measures_its_own_cost(address: str) -> None:
    with Scheduler(address) as scheduler:
        before = time.perf_counter()
        with scheduler.task("x", OPTIONS) as task:
            begun = time.perf_counter()
            task.reward = 0.5
            inside = time.perf_counter() - begun
        assert inside < scheduler.summary().cost < time.perf_counter() - before
        with scheduler.task("x", OPTIONS) as task:
            task.reward, task.cost = 0.5, 7.0
        assert scheduler.summary().cost > 7.0
        with pytest.raises(ZeroDivisionError), scheduler.task("x", OPTIONS) as task:
            task.reward = 1 / 0
        with pytest.raises(BadFeedback, match=r"task 4 has no reward; set task.reward"), scheduler.task("x", OPTIONS):
            pass
        assert [line.state for line in scheduler.latest(2)] == ["cancelled", "failed"]
        assert scheduler.summary().reports == 2


def test_a_scheduler_that_exists_is_not_given_other_settings_by_accident(durable: str) -> None:
    Scheduler(durable, policy="ratio-imed", overhead=1.0, seed=3).close()
    Scheduler(durable, policy="ratio-imed", overhead=1.0, seed=3).close()
    with pytest.raises(BadParameter, match=r"has policy ratio-imed, not random-option; .*scheduler.change"):
        Scheduler(durable, policy="random-option")
    with pytest.raises(BadParameter, match=r"has overhead 1, not 2; "):
        Scheduler(durable, overhead=2.0)
    with pytest.raises(BadParameter, match="exists with another seed"):
        Scheduler(durable, seed=4)


def test_a_policy_must_be_told_what_nobody_knows() -> None:
    with pytest.raises(BadParameter, match="must be told horizon; write dol-rm,horizon=value"):
        Scheduler(policy="dol-rm")
    told = "dol-rm,horizon=1000,reward_max=1,cost_min=0.1,price_min=0,price_max=10"
    with Scheduler(policy=told) as scheduler:
        run_some(scheduler, 5)
        assert scheduler.summary().policy.startswith("dol-rm,horizon=1000")


def test_a_snapshot_shortens_the_start_and_a_damaged_one_does_no_harm(
    durable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("worthwhile.live.replica.SNAPSHOT_EVERY", 20)
    with Scheduler(durable) as scheduler:
        run_some(scheduler, 50)
        fold = fold_of(scheduler)
        with Scheduler(durable) as again:
            assert fold_of(again).same_as(fold)
            assert again._transactor.do(lambda batch: batch.replica.saved) == 40
            assert again.rebuild()
        execute(durable, "delete from snapshot_parts")
        with Scheduler(durable) as again:
            assert fold_of(again).same_as(fold)
        assert "a snapshot cannot be used" in caplog.text


def test_an_explanation_starts_from_the_nearest_earlier_state(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a long log from its start takes long; the answer is the same, wherever one starts."""
    monkeypatch.setattr("worthwhile.live.replica.SNAPSHOT_EVERY", 20)
    read: list[int] = []
    entries = Transactor.entries
    monkeypatch.setattr(
        Transactor, "entries", lambda self, after, count: read.append(count) or entries(self, after, count)
    )
    with Scheduler(durable) as scheduler:
        tasks = run_some(scheduler, 50)
        for task, needed in ((tasks[48], 8), (tasks[48], 0), (tasks[30], 30), (tasks[34], 4), (tasks[49], 9)):
            read.clear()
            found = scheduler.explain(task)
            assert (sum(read), found.repeated, found.seen) == (needed, True, int(task.id) - 1)
            row = scheduler._transactor.do(lambda batch, id=task.id: batch.tx.tasks(batch.replica.id, [int(id)])[0])
            fresh = scheduler._transactor.do(lambda batch: batch.replica.new_fold(1))
            assert scheduler._transactor.refold(fresh, row.seen).same_as(scheduler._transactor.fold_at(1, row.seen))


def test_what_threads_ask_for_at_once_is_all_done(address: str) -> None:
    with Scheduler(address) as scheduler:
        ids: list[str] = []

        def work(number: int) -> None:
            for turn in range(8):
                task = scheduler.decide(f"kind {turn % 2}", OPTIONS, key=f"{number} {turn}")
                ids.append(task.id)
                task.report(reward=1.0, cost=2.0)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(int, ids)) == list(range(1, 97))
        found = scheduler.summary()
        assert (found.reports, found.running, found.ratio) == (96, 0, 0.5)
        assert scheduler.rebuild()


def test_forked_processes_go_on_by_themselves(durable: str) -> None:
    program = [sys.executable, str(Path(__file__).parents[1] / "forks.py"), durable]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=NET, check=False)
    assert (ended.returncode, ended.stdout) == (0, "good\n"), ended.stderr


PUBLIC = {
    "decide", "task", "report", "fail", "again", "observe", "cancel", "announce", "retire", "restore", "change",
    "summary", "explain", "evaluate", "promote", "tasks", "latest", "rebuild", "export", "load", "close", "forget",
    "name", "lease", "plot", "declare",
}  # fmt: skip


def test_a_scheduler_shows_its_users_what_they_need_and_no_more() -> None:
    with Scheduler() as scheduler:
        assert {name for name in dir(scheduler) if not name.startswith("_")} == PUBLIC


def test_a_first_try_is_explained_by_what_other_kinds_know() -> None:
    with Scheduler(seed=1) as scheduler:
        for _ in range(30):
            for kind in ("code", "chat"):
                task = scheduler.decide(kind, ["cheap", "dear", "broken"])
                if task.option == "broken":
                    task.fail(1.0)
                else:
                    task.report(1.0, 1.0 if task.option == "cheap" else 50.0)
        first = scheduler.decide("mail", ["cheap", "dear"])
        assert first.option == "cheap"
        known = "it had not been tried with this kind; other kinds suggested a reward of 1 at a cost of 1"
        assert scheduler.explain(first.id).why.startswith(known)
        failed = sum(task.option == "broken" for task in scheduler.latest(100))
        only = scheduler.decide("mail", ["broken", "new"])
        assert only.option == "new"
        assert scheduler.explain(only.id).why == "it had not been tried with this kind"
        due = next(task for task in reversed(scheduler.latest(100)) if task.option == "broken" and task.kind == "chat")
        assert failed >= 2
        assert "with others it had failed in 1 attempt of 1, and was due again" in scheduler.explain(due.task).why
