"""Bad feedback, bad tasks, bad stores: a clear error that names the value and the remedy, and nothing changed."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np
import pytest

from postgres_schemas import new_schema
from tampering import execute
from worthwhile import Decision, Rng, Scheduler
from worthwhile.errors import (
    BadFeedback,
    BadParameter,
    BadTask,
    BrokenRule,
    CannotCompile,
    Error,
    StoreError,
    UnknownTask,
)
from worthwhile.live.local import Taken, TakingIn
from worthwhile.live.stores import open_store, without_password
from worthwhile.live.validation import quoted
from worthwhile.policies.fixed import State

OPTIONS = ["short", "long"]
names = itertools.count()


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """All stores, each made once for many schedulers: the tables take longer than most tests."""
    if request.param == "postgres":
        return new_schema(request.getfixturevalue("server"))
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path_factory.mktemp('shared')}/tasks.db"


@pytest.fixture
def fresh(shared: str) -> Iterator[Scheduler]:
    """A scheduler that nobody has used, in a store that others use too."""
    with Scheduler(shared, f"{next(names)}") as scheduler:
        yield scheduler


@pytest.mark.parametrize(
    ("reward", "cost", "words"),
    [
        (float("nan"), 1.0, "reward = nan; it must be a finite number"),
        (1.0, float("nan"), "cost = nan; it must be a finite number"),
        (float("inf"), 1.0, "reward = inf; it must be a finite number"),
        (1.0, float("-inf"), "cost = -inf; it must be a finite number"),
        (10**400, 1.0, "reward = 1000.*…; it must be a finite number"),
        pytest.param(1.0, 10**5000, "cost = <int that cannot be shown>; it must be a finite", id="a huge cost"),
        (1.0, 0.0, "cost = 0.0; it must be above 0"),
        (1.0, -2, "cost = -2; it must be above 0"),
        ("good", 1.0, "reward = 'good'; it must be a number"),
        (1.0, "3", "cost = '3'; it must be a number"),
        (True, 1.0, "reward = True; it must be a number"),
        ([1.0], 1.0, r"reward = \[1.0\]; it must be a number"),
        (1j, 1.0, "reward = 1j; it must be a number"),
        (1e300, 1.0, r"reward = 1e\+300; it must be at most 1e\+100: use another unit"),
        (1.0, 1e-300, "cost = 1e-300; it must be at most 1e.100 and at least 1e-100: use another unit"),
        (None, None, "task 1: neither a reward nor a cost; report at least one"),
    ],
)
def test_bad_feedback_changes_nothing(fresh: Scheduler, reward: Any, cost: Any, words: str) -> None:
    task = fresh.decide("x", OPTIONS)
    with pytest.raises(BadFeedback, match=words):
        task.report(reward, cost)
    if reward is not None:
        with pytest.raises(BadFeedback, match=words):
            task.observe(next(option for option in OPTIONS if option != task.option), reward, cost)
    assert fresh.latest()[0].state == "running"
    task.report(reward=1.0, cost=2.0)
    assert (fresh.summary().reports, fresh.summary().bad_entries) == (1, 0)


NOT_IDS = ["", "abc", -1, 0, 1 << 60, None, True, "1; drop table tasks", 1.0, 1.5, math.inf, math.nan, "1.0", "1_0"]
NOT_IDS += [
    "１",
    "١",
    " 1",
    "1 ",
    "+1",
    "-1",
    "01",
    "0x1",
    "1e0",
    b"1",
    10**5000,
    "1" * 5000,
    [1],
    np.float64(1),
    np.True_,
]


@pytest.mark.parametrize("id", ["77", 77, *NOT_IDS], ids=lambda id: quoted(id)[:20])
def test_an_unknown_task_is_refused(fresh: Scheduler, id: Any) -> None:
    fresh.decide("x", OPTIONS)
    for refused in (
        lambda: fresh.report(id, 1.0, 1.0),
        lambda: fresh.observe(id, "long", 1.0, 1.0),
        lambda: fresh.cancel(id),
        lambda: fresh.explain(id),
    ):
        with pytest.raises(UnknownTask, match=r"no task .*; an id is what decide gave, as task.id"):
            refused()


def test_an_id_may_be_text_or_any_whole_number(address: str) -> None:
    with Scheduler(address) as scheduler:
        for _ in range(10):
            scheduler.decide("x", OPTIONS)
        for id in ("1", 2, np.int64(3), np.uint8(4), "10"):
            scheduler.report(id, 1.0, 1.0)
        assert [line.task for line in scheduler.latest() if line.state == "reported"] == ["10", "4", "3", "2", "1"]


@pytest.mark.parametrize(
    "count", [0, -1, 1.0, True, "3", None, 10**5000, math.nan], ids=lambda count: quoted(count)[:20]
)
def test_how_many_tasks_is_a_whole_number_above_0(fresh: Scheduler, count: Any) -> None:
    fresh.decide("x", OPTIONS)
    with pytest.raises(BadParameter, match=r"count = .*; it must be a whole number, 1 or more"):
        fresh.latest(count)
    assert len(fresh.latest(np.int64(5))) == len(fresh.latest(1 << 47)) == 1


def test_an_observation_is_of_another_option_on_offer(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler.decide("x", ["elsewhere"])
        task = scheduler.decide("x", OPTIONS)
        for option in ("elsewhere", "never seen", 7):
            with pytest.raises(BadFeedback, match=r"task 2: option .* was not on offer"):
                task.observe(option, 1.0, 1.0)
        with pytest.raises(BadFeedback, match="is the one that was chosen; report it"):
            task.observe(task.option, 1.0, 1.0)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("x", [], "no options; offer at least one"),
        ("x", list(range(1001)), "1001 options; a task can have at most 1000"),
        ("x", ["a", "b", "a"], 'option "a" is offered twice'),
        ("x", [0.0, -0.0], "option 0.0 is offered twice"),
        ("x", ["ü" * 100], "option .* has 202 bytes; at most 200"),
        ("x", [10**5000], "option <int that cannot be shown>: a number has at most 200 digits"),
        ("x", [10**300], "option .* has 301 bytes; at most 200"),
        ("x", 5, "options = 5; give a list of options"),
        ("x", [float("nan")], "option nan: a number must be finite"),
        ("x", [float("inf")], "option inf: a number must be finite"),
        ("x", [(1, 2)], r"option \(1, 2\): an option is text, a number, true, false or null"),
        ("x", [{"a": 1}], "option .*: an option is text, a number"),
        ("x", ["\ud800"], "it has a character that is no Unicode text"),
        ("x", "abc", "options = 'abc'; give a list of options"),
        ("y" * 201, ["a"], "kind 'y+'… has 201 bytes; at most 200"),
        ("", ["a"], "kind '': it must be text, and not empty"),
        (5, ["a"], "kind 5: it must be text"),
        (["x"], ["a"], r"kind \['x'\]: it must be text"),
        ("a\0b", ["a"], "must not contain the character"),
    ],
)
def test_a_bad_task_changes_nothing(fresh: Scheduler, kind: Any, options: Any, words: str) -> None:
    with pytest.raises(BadTask, match=words):
        fresh.decide(kind, options)
    assert fresh.summary().tasks == 0
    assert fresh.summary().kinds == []


def test_names_that_never_come_again_are_refused_before_memory_ends(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.live.replica.MOST_CELLS", 64)
    many = list(range(1, 9))
    with Scheduler(address) as scheduler:
        scheduler.decide("a", many[:7]).report(1.0, 1.0)
        scheduler.announce("bcdefgh", [8])
        for kind, options in (("i", [1]), ("a", [8, 9])):
            with pytest.raises(BadTask, match=r"knows 8 kinds and 8 options already, and kinds × .* may be 64; use"):
                scheduler.decide(kind, options)
        for kinds, options in ((["i"], []), (["a", "i"], [1]), (["a"], [1, 9])):
            with pytest.raises(BadTask):
                scheduler.announce(kinds, options)
        scheduler.decide("c", many).report(1.0, 1.0)
        assert len(scheduler.summary().kinds) == 8
        assert scheduler.rebuild()


def test_the_limits_themselves_are_allowed(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler.decide("k" * 200, list(range(1000)), key="y" * 200).report(reward=1e100, cost=1e-100)
        scheduler.decide("k" * 200, ["o" * 198]).report(reward=-1e100, cost=1e100)
        assert scheduler.summary().reports == 2
        assert scheduler.rebuild()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"overhead": -1.0}, "overhead = -1.0; it must be a number, 0 or more"),
        ({"overhead": float("nan")}, "overhead = nan"),
        ({"lease": "long"}, "lease = 'long'; it must be a number"),
        ({"lease": 10**5000}, "lease = <int that cannot be shown>; it must be a number, 0 or more"),
        ({"seed": -1}, "seed = -1; it must be a whole number"),
        ({"engine": "fast"}, "engine = 'fast'; it must be one of compiled, python"),
        ({"name": ""}, "scheduler '': it must be text"),
        ({"url": "mysql://x"}, "no store called 'mysql'; write sqlite:///"),
        ({"url": "http://localhost:8080"}, "that is a service, and this needs the store itself; write sqlite:///"),
        ({"url": "sqlite:///x.db?sync=off"}, "synchronous=normal is the one setting there is"),
        ({"url": "sqlite://"}, "write sqlite:///relative.db"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        Scheduler(**settings)


class Odd(NamedTuple):
    """Chooses what nobody offered, fails, does more with its arrays than index them, cannot learn, or estimates NaN."""

    how: int

    def init(self, kinds: int, options: int) -> State:
        return State(np.zeros(1))

    def choose(self, state: State, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
        if self.how == 1:
            raise ZeroDivisionError("mine")
        tasks = json.loads(json.dumps(state.tasks.tolist() if self.how == 2 else [0.0]))
        reward = math.nan if self.how == 4 else 0.0
        return Decision(
            99 if self.how == 0 else options[0], reward, float(np.sum(state.tasks.reshape(-1)) + 0 * tasks[0])
        )

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 0.0)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        if self.how == 3:
            raise ZeroDivisionError("mine")
        state.tasks[0] += 1.0

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


def test_a_policy_that_breaks_the_rules_is_named(address: str) -> None:
    with Scheduler(address, policy=Odd(0)) as scheduler, pytest.raises(BrokenRule, match="Odd chose an option that"):
        scheduler.decide("x", OPTIONS)
    with (
        Scheduler(address, "b", policy=Odd(1)) as scheduler,
        pytest.raises(BrokenRule, match="Odd raised ZeroDivision"),
    ):
        scheduler.decide("x", OPTIONS)
    with Scheduler(address, "c", policy=Odd(2)) as scheduler:
        scheduler.decide("x", OPTIONS).report(1.0, 1.0)
        assert scheduler.explain(scheduler.decide("x", OPTIONS)).options[0].cost_estimate == 1.0
        with pytest.raises(CannotCompile, match="numba cannot compile Odd"):
            Scheduler(policy=Odd(2), engine="compiled")
    with Scheduler(address, "d", policy=Odd(3)) as scheduler:
        scheduler.decide("x", OPTIONS).report(1.0, 1.0)
        assert "Odd raised ZeroDivisionError: mine" in scheduler.summary().set_aside[0].why
        assert scheduler.rebuild()
    with (
        Scheduler(address, "e", policy=Odd(4)) as scheduler,
        pytest.raises(BrokenRule, match=r"Odd estimated reward nan and cost 0.0; both must be finite"),
    ):
        scheduler.decide("x", OPTIONS)


BAD_ROWS: dict[str, str] = {
    "kind = 99": "task 2: no kind has the number 99",
    "kind = -1": "task 2: no kind has the number -1",
    "kind = null": "task 2: no kind has the number None",
    "option = 99": "task 2: no option has the number 99",
    "reward = null": "task 2: reward = None is not a finite number",
    "cost = 0": "task 2: cost = 0.0 with overhead 0.0 is not above 0",
    "cost = -3": "cost = -3.0",
    "cost = null": "cost = None",
    "overhead = -100": "overhead -100.0",
    "reward_estimate = null": "reward_estimate = None is not",
}
ONLY_SQLITE = {"reward = 'text'": "reward = 'text' is not", "cost = x'00ff'": r"cost = b'\x00\xff'"}
ONLY_POSTGRES = {"reward = 'NaN'": "reward = nan is not", "cost = 'Infinity'": "cost = inf is not"}


@pytest.mark.parametrize("change", [*BAD_ROWS, *ONLY_SQLITE, *ONLY_POSTGRES])
def test_a_bad_row_in_the_log_is_set_aside_and_named(request: pytest.FixtureRequest, change: str) -> None:
    stores = ["sqlite"] * (change not in ONLY_POSTGRES) + ["postgres"] * (change not in ONLY_SQLITE)
    words = {**BAD_ROWS, **ONLY_SQLITE, **ONLY_POSTGRES}[change]
    for store in stores:
        url = request.getfixturevalue(store)
        with Scheduler(url) as scheduler:
            for _ in range(3):
                scheduler.decide("x", OPTIONS).report(reward=1.0, cost=2.0)
        execute(url, f"update reports set {change} where number = 2")
        with Scheduler(url) as scheduler:
            scheduler.decide("x", OPTIONS).report(reward=1.0, cost=2.0)
            found = scheduler.summary()
            assert (found.reports, found.bad_entries) == (3, 1)
            assert found.set_aside[0].number == 2
            assert words in found.set_aside[0].why
            assert scheduler.rebuild()


def test_missing_rows_are_named_too(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        for _ in range(4):
            scheduler.decide("x", OPTIONS).report(reward=1.0, cost=2.0)
    execute(durable, "delete from reports where number in (2, 4)")
    with Scheduler(durable) as scheduler:
        scheduler.decide("x", OPTIONS).report(reward=1.0, cost=2.0)
        found = scheduler.summary()
        assert found.reports == 3
        assert [(one.number, one.why) for one in found.set_aside] == [
            (2, "entries 2 to 2 are missing from the log"),
            (4, "entries 4 to 4 are missing from the log"),
        ]
        assert scheduler.rebuild()


def test_a_newer_schema_is_refused(durable: str) -> None:
    Scheduler(durable).close()
    execute(durable, "update worthwhile set version = 99")
    with pytest.raises(StoreError, match=r"schema version 99, .* up to 6; .*pip install --upgrade worthwhile"):
        Scheduler(durable)


def contents(path: Path) -> bytes:
    return path.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:100],
        lambda whole: np.random.default_rng(1).bytes(len(whole)),
        lambda whole: b"my shopping list" * 300,
        lambda whole: whole[:4096] + np.random.default_rng(1).bytes(len(whole) - 4096),
    ],
    ids=["half of it", "the header", "noise", "another file", "noise behind the header"],
)
def test_a_damaged_file_is_named_and_left_alone(sqlite: str, damage: Callable[[bytes], bytes]) -> None:
    path = Path(sqlite.removeprefix("sqlite:///"))
    with Scheduler(f"{sqlite}?synchronous=normal") as scheduler:
        for number in range(300):
            scheduler.decide(f"kind {number}", OPTIONS).report(reward=1.0, cost=2.0)
    damaged = damage(contents(path))
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match=r"tasks.db is damaged, or no SQLite database; it was left as it is"):
        use(sqlite)
    assert contents(path) == damaged


def use(url: str) -> None:
    """Read all of a store, one way or another."""
    with Scheduler(url) as scheduler:
        for number in range(300):
            scheduler.explain(number + 1)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    connection = apsw.Connection(str(path))
    connection.execute("create table photos (name)")
    connection.close()
    before = contents(path)
    with pytest.raises(StoreError, match=r"is a database of something else \(it has photos\); name another file"):
        Scheduler(f"sqlite:///{path}")
    assert contents(path) == before


def test_a_store_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"/nowhere/tasks.db: .*unable to open database file; .*folder must be there"):
        Scheduler("sqlite:////nowhere/tasks.db")
    with pytest.raises(StoreError, match="no store at"):
        open_store(f"sqlite:///{tmp_path}/absent.db", create=False)
    with pytest.raises(StoreError, match=r"postgresql://…@/x\?host=/nowhere: .*nothing was stored: start the server"):
        Scheduler("postgresql://user:secret@/x?host=/nowhere")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:hunter2@host/x", "postgresql://…@host/x"),
        ("postgresql://host/x?password=hunter2&host=there", "postgresql://host/x?password=…&host=there"),
        ("postgresql://host/x?p%61ssword=hunter2", "postgresql://host/x?p%61ssword=…"),
        ("postgresql://host/x?password=hunt@er2", "postgresql://…"),
        ("postgresql://me:hunt?er2@host/x", "postgresql://…"),
        ("postgresql://me:hunt/er2@host/x", "postgresql://…@host/x"),
        ("postgresql://me:hunter2%zz@host/x", "postgresql://…@host/x"),
        ("mysql://me:hunter2@host/x", "mysql://…@host/x"),
        ("sqlite:///x.db?password=hunter2", "sqlite:///x.db?password=…"),
        ("host=nowhere password=hunter2", "host=nowhere password=…"),
        ("host=nowhere PASSWORD = 'hunter2 \\' er2' user=me", "host=nowhere PASSWORD = … user=me"),
    ],
)
def test_no_error_shows_a_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
    if "host/" not in address or "%zz" in address:  # those that are refused before anyone is asked
        with pytest.raises(Error) as refusal:
            Scheduler(address, create=False)
        assert "er2" not in str(refusal.value)


def test_a_scheduler_that_was_closed_says_so(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", [1, 2])
    for use in (scheduler.summary, lambda: scheduler.decide("x", [1, 2]), lambda: task.report(reward=1.0, cost=1.0)):
        with pytest.raises(StoreError, match=r"was closed.* open it again"):
            use()


def test_settings_are_plain_text(sqlite: str) -> None:
    with Scheduler(sqlite, overhead=1.5) as scheduler:
        scheduler.retire("long", kind="x")
    text = open_store(sqlite).transact(lambda tx: tx.settings(1))
    assert json.loads(text) == {
        "policy": 1,
        "overhead": 1.5,
        "retired": [["x", '"long"']],
        "failed_reward": None,
        "store_reasons": True,
        "forgotten": 0,
    }


def test_history_never_touches_what_was_decided_here(address: str, tmp_path: Path) -> None:
    def table(*rows: tuple[str, str, str]) -> Path:
        lines = ["task_type,item_id,option,reward,cost,observed,option_json"]
        lines += [f"{kind},{item},{option},1.0,2.0,false,{option}" for kind, item, option in rows]
        path = tmp_path / "old.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", [1, 2], key="old:7")
        before = scheduler.summary()
        with pytest.raises(BadTask, match=r"key 'old:7' belongs to task 1, which was decided here"):
            scheduler.load(table(("x", "5", "1"), ("x", "7", "9")))
        with pytest.raises(BadTask, match=r"key 'old:5' is of a task of kind 'x', now of kind 'y'"):
            scheduler.load(table(("x", "5", "1"), ("y", "5", "2")))
        assert scheduler.summary() == before
        assert scheduler.load(table(("x", "5", "1"))) == 1
        with pytest.raises(BadTask, match=r"kind 'x', now of kind 'y'"):
            scheduler.load(table(("y", "5", "1")))
        task.report(1.0, 1.0)
        assert scheduler.summary().reports == 2
        assert scheduler.rebuild()


def test_a_log_that_lost_its_end_still_opens(sqlite: str) -> None:
    with Scheduler(sqlite) as scheduler:
        for _ in range(3):
            scheduler.decide("x", OPTIONS).report(1.0, 1.0)
    execute(sqlite, "update schedulers set reports = 5000")
    with Scheduler(sqlite) as scheduler:
        assert "entries 4 to 5000 are missing from the log" in scheduler.summary().set_aside[0].why
        scheduler.decide("x", OPTIONS).report(1.0, 1.0)
        assert scheduler.summary().reports == 4


@pytest.mark.parametrize("kind", [5, float("nan"), True, [1], b"x", "", "\0", "\ud800", "x" * 201])
def test_a_kind_that_cannot_be_is_neither_retired_nor_restored(durable: str, kind: Any) -> None:
    with Scheduler(durable) as scheduler:
        for call in (scheduler.retire, scheduler.restore):
            with pytest.raises(BadTask, match="kind"):
                call("short", kind)
        assert scheduler.decide("a", OPTIONS).option in OPTIONS


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"overhead": 1e308}, "overhead = 1e+308; it is from 0 to 1e+100"),
        ({"lease": math.inf}, "lease = inf; it is from 0"),
        ({"lease": -1.0}, "lease = -1.0; it is from 0"),
        ({"reward_estimate": 1e308}, "reward_estimate = 1e+308; it is at most 1e+200"),
        ({"cost_estimate": math.nan}, "cost_estimate = nan; it is at most"),
        ({"price": -1e308}, "price = -1e+308; it is at most"),
        ({"age": 1e9}, "age = 1000000000.0; it is at most 1e+08 seconds"),
        ({"probability": math.nan}, "probability = nan; it is from 0 to 1"),
        ({"mode": 6}, "mode = 6; it is below 6"),
        ({"option": 2}, "option = 2; it is the place of one of the options"),
        ({"own": -1}, "own = -1; it is the place"),
        ({"pending": [0]}, "pending = [0]; it has a number for each of the 2 options"),
        ({"key": "mine"}, "key = 'mine'; it begins with local-"),
        ({"seen": 1}, "seen = 1; it is 0 where no policy has decided"),
        ({"policy": 9}, "policy = 9: not of this scheduler; tell the one that the copy is of"),
    ],
)
def test_a_decision_made_elsewhere_that_none_can_be_is_refused(
    fresh: Scheduler, wrong: dict[str, Any], words: str
) -> None:
    """One of these would spoil every sum that it is counted in, or could not be read again."""
    sound = Taken(f"local-{next(names):032x}", "a", OPTIONS, 0, [0, 0], 0.0, 0.0, None, 0, 0, 0.0, 60.0, 1.0)
    with pytest.raises(BadTask) as error:
        fresh._transactor.ask(TakingIn(sound._replace(**wrong)))
    assert words in str(error.value)
    assert fresh.summary().tasks == 0
    fresh._transactor.ask(TakingIn(sound))
    assert fresh.summary().tasks == 1


def test_a_key_told_again_with_another_option_is_refused(fresh: Scheduler) -> None:
    taken = Taken(f"local-{next(names):032x}", "a", OPTIONS, 0, [0, 0], 0.0, 0.0, None, 0, 0, 0.0, 60.0, 1.0)
    id = fresh._transactor.ask(TakingIn(taken))
    assert fresh._transactor.ask(TakingIn(taken)) == id
    with pytest.raises(BadTask, match='belongs to task 1, which took "short", not "long"; use another key'):
        fresh._transactor.ask(TakingIn(taken._replace(option=1)))
    fresh.fail(id, 1.0)
    assert fresh.again(id).option == "long"
    assert fresh._transactor.ask(TakingIn(taken)) == id  # the first answer may have been lost
    assert fresh.summary().tasks == 1
