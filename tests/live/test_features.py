"""Features of a task: stored with it, learned from with its report, the same in every process, and forgotten."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from by_features import BySign, InBulk
from tampering import execute
from worthwhile import Scheduler
from worthwhile.errors import BadParameter, BadTable, BadTask, StoreError, UnknownTask
from worthwhile.live.checking import find_damage
from worthwhile.live.engines import Compiled
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import Deciding, Reporting
from worthwhile.live.settings import settings_from
from worthwhile.live.validation import MOST_FEATURES, feature_text, features_in
from worthwhile.policies.features import CATEGORY, LEAST_ROOM

OPTIONS = ["left", "right", "middle"]


def fold_of(scheduler: Scheduler) -> Any:
    return scheduler._transactor.do(lambda batch: batch.replica.fold)


def log_of(scheduler: Scheduler) -> list[Any]:
    return scheduler._transactor.entries(0, 1000)


def work(scheduler: Scheduler, first: int = 0, count: int = 60) -> None:
    """Tasks with a feature that matters and others, one after the other; left is good where `x` is below 0."""
    for number in range(first, first + count):
        x = math.cos(number)
        features = {"x": x, f"other {number // 4}": number, "category": f"c{number % 3}", "missing": None}
        task = scheduler.decide("kind", OPTIONS, features=features if number % 5 else None)
        good = task.option == ("left" if x < 0 else "right")
        if number % 7 == 3:
            task.fail(2.0, "it broke")
            task = task.again()
        if number % 4:
            task.report(1.0 + number / 9 if good else 0.0, 1.5)
        else:
            task.fail()
        if number % 6 == 1:
            task.observe(next(option for option in OPTIONS if option != task.option), 0.25, 1.0)


def test_features_decide(address: str) -> None:
    with Scheduler(address, policy=BySign()) as scheduler:
        work(scheduler)
        assert scheduler.decide("kind", OPTIONS, features={"x": -0.5}).option == "left"
        assert scheduler.decide("kind", OPTIONS, features={"x": 0.5}).option == "right"


def test_features_are_in_the_task_and_in_all_its_entries_of_the_log(address: str) -> None:
    with Scheduler(address, policy=BySign()) as scheduler:
        task = scheduler.decide("kind", OPTIONS, features={"x": -1, "name": "ü", "none": None, "on": True})
        task.fail(1.0)
        task.again().report(1.0, 1.0)
        task.observe("middle", 0.5, 1.0)
        scheduler.decide("kind", OPTIONS).report(1.0, 1.0)
        text = '{"x": -1, "name": "ü", "on": true}'
        assert [entry.features for entry in log_of(scheduler)] == [text, text, text, None]
        assert scheduler.rebuild()


@pytest.mark.parametrize("policy", [BySign(), InBulk()])
def test_another_process_learns_the_same_to_the_bit(durable: str, policy: Any) -> None:
    with Scheduler(durable, policy=policy) as scheduler, Scheduler(durable, policy=policy) as other:
        for portion in range(4):
            work(scheduler, 20 * portion, 20)
            assert fold_of(other).same_as(fold_of(scheduler))
        assert fold_of(scheduler).size.features == 32
        assert scheduler.rebuild()
        scheduler._transactor.do(lambda batch: batch.replica.want_snapshot())
    with Scheduler(durable, policy=policy) as again:
        assert again._transactor.replica.saved > 0
        assert again.rebuild()


def test_what_is_learned_is_what_the_policy_makes_of_the_log() -> None:
    with Scheduler(policy=BySign()) as scheduler:
        work(scheduler)
        state, numbers = fold_of(scheduler).state.learned, fold_of(scheduler).feature_numbers
        entries = [entry for entry in log_of(scheduler) if entry.features is not None]
        x = [json.loads(entry.features)["x"] for entry in entries]
        table = state.features[numbers["x"]]
        assert table.tolist() == pytest.approx(
            [
                len(entries),
                sum(x),
                sum(entry.reward is not None for entry in entries),
                sum(entry.reward is None for entry in entries),
            ]
        )
        assert list(numbers)[:4] == ["x", "other 0", "category", "other 1"]


def test_every_decision_can_be_repeated() -> None:
    with Scheduler(policy=BySign()) as scheduler:
        work(scheduler)
        for task in range(1, 61):
            assert scheduler.explain(task).repeated


class Hopeful(BySign):
    """Expects more of a task with features."""

    def choose_by_features(self, *given: Any) -> Any:
        return super().choose_by_features(*given)._replace(reward_estimate=0.75)


def test_a_decision_by_features_is_explained_as_one() -> None:
    with Scheduler(policy=Hopeful()) as scheduler:
        for _ in range(6):
            scheduler.decide("kind", OPTIONS, features={"x": 1}).report(0.5, 1.0)
        why = scheduler.explain(6)
        assert why.repeated
        assert why.why == "for its features, a reward of 0.75 at a cost of 1 was expected"
        scheduler.decide("kind", OPTIONS)
        assert "features" not in scheduler.explain(7).why


def test_the_compiled_engine_gives_the_same_bits() -> None:
    with (
        Scheduler(policy=BySign(), seed=1) as scheduler,
        Scheduler(policy=BySign(), seed=1, engine="compiled") as other,
    ):
        engine = other._transactor.do(lambda batch: batch.replica.fold.engine)
        other.decide("kind", OPTIONS)
        scheduler.decide("kind", OPTIONS)
        assert "with_features" not in vars(engine)
        for one in (scheduler, other):
            work(one)
        assert engine.with_features is not None
        assert fold_of(other).same_as(fold_of(scheduler))
        assert [line.option for line in scheduler.latest(99)] == [line.option for line in other.latest(99)]
        assert other.rebuild()


def test_what_numba_cannot_compile_is_interpreted_and_gives_the_same_bits(caplog: pytest.LogCaptureFixture) -> None:
    with Scheduler(policy=BySign(), seed=1) as scheduler, Scheduler(policy=InBulk(), seed=1) as other:
        fold = fold_of(other)
        fold.engine = Compiled(fold.policy, fold.engine.seed_key)
        fold.engine.bind(fold.state)
        for one in (scheduler, other):
            work(one, count=20)
        assert fold.engine.with_features is None
        assert fold.same_as(fold_of(scheduler))
    assert "numba cannot compile what InBulk does with features" in caplog.text


def test_a_policy_that_does_not_look_at_features_knows_nothing_of_them() -> None:
    with (
        Scheduler(policy="ratio-ts,cost_min=0.5", seed=1) as scheduler,
        Scheduler(policy="ratio-ts,cost_min=0.5", seed=1) as other,
    ):
        for number in range(20):
            scheduler.decide("kind", OPTIONS, features={"x": number}).report(number / 9, 1.0)
            other.decide("kind", OPTIONS).report(number / 9, 1.0)
        assert fold_of(scheduler).same_as(fold_of(other))
        assert fold_of(scheduler).size.features == 0
        scheduler.change(policy=BySign())  # which learns from all of them
        assert fold_of(scheduler).state.learned.features[0].tolist() == [20.0, 190.0, 20.0, 0.0]
        assert scheduler.rebuild()


def test_a_policy_sees_features_in_the_order_in_which_they_first_came() -> None:
    with Scheduler(policy=BySign()) as scheduler:
        scheduler.decide("kind", OPTIONS, features={"b": 2, "a": -1.5})
        scheduler.decide("kind", OPTIONS, features={"c": "text", "none": None, "a": True})
        fold = fold_of(scheduler)
        assert fold.feature_numbers == {"b": 0, "a": 1, "c": 2}
        vector = fold.vector('{"c": "text", "b": false}')
        assert vector[0] == 0.0
        assert math.isnan(vector[1])
        assert vector[2] >= CATEGORY
        assert len(vector) == LEAST_ROOM


def test_the_same_key_is_the_same_task_whatever_its_features(address: str) -> None:
    with Scheduler(address, policy=BySign()) as scheduler:
        first = scheduler.decide("kind", OPTIONS, key="k", features={"x": 1})
        assert scheduler.decide("kind", OPTIONS, key="k", features={"y": 2}).id == first.id
        assert scheduler.decide("kind", OPTIONS, key="k").id == first.id
        [line] = scheduler.latest()
        assert line.features == {"x": 1}
        assert list(fold_of(scheduler).feature_numbers) == ["x"]


def test_features_are_shown_with_their_task(address: str) -> None:
    told = {"x": 1, "y": 0.5, "on": False, "name": "ü"}
    with Scheduler(address, policy=BySign()) as scheduler:
        with scheduler.task("kind", OPTIONS, features=told) as task:
            task.reward = 1.0
        scheduler.decide("kind", OPTIONS, features={})
        assert scheduler.explain(1).features == scheduler.tasks([1])[0].features == told
        assert [line.features for line in scheduler.latest()] == [None, told]
        assert scheduler.explain(2).features is None
        assert repr(scheduler.latest()[1].features) == repr(told)  # not only equal


def test_a_report_and_what_is_learned_from_its_features_are_stored_together(durable: str) -> None:
    with Scheduler(durable, policy=BySign()) as scheduler:
        work(scheduler, count=8)
        before, known = log_of(scheduler), fold_of(scheduler).copy()
        real = scheduler._transactor.store.add

        def lost(*rows: Any) -> None:
            real(*rows)
            raise StoreError("the server has gone")

        task = scheduler.decide("kind", OPTIONS, features={"x": 1})
        scheduler._transactor.store.add = lost
        with pytest.raises(StoreError, match="gone"):
            task.report(1.0, 1.0)
        with pytest.raises(StoreError, match="gone"):
            scheduler.decide("kind", OPTIONS, features={"new": 1})
        scheduler._transactor.store.add = real
        assert log_of(scheduler) == before
        assert fold_of(scheduler).same_as(known)
        assert "new" not in fold_of(scheduler).feature_numbers
        task.report(1.0, 1.0)
        assert scheduler.rebuild()


# what is refused

BAD: list[tuple[Any, str]] = [
    ([("x", 1)], r"features = \[\('x', 1\)\]; give a mapping"),
    ("x", "features = 'x'; give a mapping"),
    ({"": 1}, "feature '': it must be text, and not empty"),
    ({1: 1}, "feature 1: it must be text"),
    ({"x" * 201: 1}, "201 bytes; at most 200"),
    ({"ü" * 101: 1}, "202 bytes; at most 200"),
    ({"a\0": 1}, "must not contain the character"),
    ({"\ud800": 1}, "no Unicode text"),
    ({"x": math.nan}, "feature 'x' = nan; if it is not known, leave it out, or give None"),
    ({"x": np.float32("inf")}, "feature 'x' = inf; if it is not known, leave it out, or give None"),
    ({"x": 1.1e100}, r"feature 'x' = 1.1e\+100; at most 1e\+100: use another unit"),
    ({"x": -(10**101)}, "at most .*: use another unit"),
    ({"x": [1]}, r"feature 'x' = \[1\]; it must be a number, true, false or text"),
    ({"x": 1j}, "it must be a number, true, false or text"),
    ({"x": b"1"}, "it must be a number, true, false or text"),
    ({"x": "t" * 201}, "feature 'x': 't.* has 201 bytes; at most 200"),
    ({"x": "\ud800"}, "feature 'x': .* no Unicode text"),
    ({f"x{number}": True for number in range(257)}, "257 features; a task can have at most 256"),
    ({f"x{number}": "t" * 100 for number in range(40)}, "bytes as JSON; at most 4096: give fewer"),
]


@pytest.mark.parametrize(("features", "complaint"), BAD)
def test_a_bad_feature_is_refused_by_name_with_a_remedy(features: Any, complaint: str) -> None:
    with Scheduler(policy=BySign()) as scheduler:
        with pytest.raises(BadTask, match=complaint):
            scheduler.decide("kind", OPTIONS, features=features)
        assert scheduler.latest() == []


def test_a_scheduler_knows_a_limited_number_of_features() -> None:
    with Scheduler(policy=BySign()) as scheduler:
        for start in range(0, MOST_FEATURES, 64):
            task = scheduler.decide("kind", OPTIONS, features={f"x{start + each}": each for each in range(64)})
            task.report(1.0, 1.0)
        with pytest.raises(BadTask, match="feature 'new' is new, and this scheduler knows 256 others already; 256 are"):
            scheduler.decide("kind", OPTIONS, features={"x1": 1, "new": 2})
        scheduler.decide("kind", OPTIONS, features={"x1": 1, "x255": 2}).report(1.0, 1.0)
        assert fold_of(scheduler).size.features == MOST_FEATURES
        assert scheduler.rebuild()


def test_values_of_numpy_are_taken_as_plain_ones() -> None:
    told = {"i": np.int64(3), "f": np.float32(0.5), "b": np.bool_(True), "t": np.str_("text"), "z": -0.0, "e": ""}
    assert feature_text(told) == '{"i": 3, "f": 0.5, "b": true, "t": "text", "z": 0.0, "e": ""}'
    assert feature_text({"x": None}) is feature_text({}) is feature_text(None) is None


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
values = st.none() | st.booleans() | st.integers(-(10**100), 10**100) | st.floats(-1e100, 1e100) | st.just("") | names


@given(st.dictionaries(names, values, max_size=10))
def test_features_come_back_from_their_text_as_they_were_given(told: dict[str, Any]) -> None:
    text, known = feature_text(told), {name: value for name, value in told.items() if value is not None}
    if text is None:
        assert known == {}
    else:
        assert features_in(text) == known
        assert list(features_in(text)) == list(known)
        assert list(map(type, features_in(text).values())) == list(map(type, known.values()))


@given(st.recursive(values, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)) | st.binary())
def test_whatever_is_given_as_features_is_taken_or_refused_in_our_words(told: Any) -> None:
    with suppress(BadTask):
        features_in(feature_text(told) or '{"x": 1}')


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "{", '{"x": null}', '{"x":1}', '{"x": NaN}', '{"x": [1]}', b"{}"]
)
def test_a_text_that_was_never_written_is_no_features(text: Any) -> None:
    with pytest.raises(ValueError, match="not what was written"):
        features_in(text)


# damage


@pytest.mark.parametrize("change", ["null", "'{}'", "'{\"x\": 7}'", "'{'"])
def test_damaged_features_are_set_aside_and_named(durable: str, change: str) -> None:
    with Scheduler(durable, policy=BySign()) as scheduler:
        for x in (1, 2, 3):
            scheduler.decide("kind", OPTIONS, features={"x": x}).report(x / 9, 1.0)
    execute(durable, f"update reports set features = {change} where number = 2")
    assert [found[:2] for found in find_damage(durable).damage] == [("reports", "scheduler 1, number 2")]
    with Scheduler(durable, policy=BySign()) as scheduler:
        assert scheduler.summary().bad_entries == 1
        assert fold_of(scheduler).state.learned.features[0].tolist() == [2.0, 4.0, 2.0, 0.0]
        assert scheduler.rebuild()


def test_damaged_features_without_a_checksum_are_set_aside_too(durable: str) -> None:
    with Scheduler(durable, policy=BySign()) as scheduler:
        task = scheduler.decide("kind", OPTIONS, features={"x": 1})
        task.report(1.0, 1.0)
    execute(durable, "update reports set features = '{', checksum = null")
    execute(durable, "update tasks set features = '{', checksum = null")
    assert [found.table for found in find_damage(durable).damage] == ["tasks", "reports"]
    with Scheduler(durable, policy=BySign()) as scheduler:
        assert scheduler.summary().bad_entries == 1
        with pytest.raises(StoreError, match=r"table tasks, scheduler 1, task 1: features = '{' are not what"):
            scheduler.explain(task.id)


# forgetting

SECRET = "Ada Lovelace"


def told_secrets(scheduler: Scheduler) -> list[str]:
    """Tasks whose features, reasons and earlier attempts hold a secret; their ids."""
    ids = []
    for number in range(6):
        task = scheduler.decide("kind", OPTIONS, features={"x": number - 2.5, "name": SECRET})
        task.fail(1.0, f"no such patient: {SECRET}")
        again = task.again()
        again.report(1.0, 1.0) if number % 2 else again.fail(2.0, f"also {SECRET}")
        task.observe(next(option for option in OPTIONS if option not in (task.option, again.option)), 0.5, 1.0)
        ids.append(task.id)
    return ids


def everything(scheduler: Scheduler, folder: Path) -> str:
    scheduler.export(folder / "all.jsonl")
    said = [scheduler.latest(99), log_of(scheduler), scheduler.summary(), (folder / "all.jsonl").read_text("utf-8")]
    rows = scheduler._transactor.do(lambda batch: batch.tx.latest(batch.replica.id, 99))
    return repr([*said, rows, [scheduler.explain(line.task) for line in scheduler.latest(99)]])


def test_what_is_forgotten_is_nowhere_any_more(address: str, tmp_path: Path) -> None:
    with Scheduler(address, policy=BySign()) as scheduler:
        ids = told_secrets(scheduler)
        work(scheduler, count=10)
        assert SECRET in everything(scheduler, tmp_path)
        before = scheduler.summary()
        for id in ids[:-1]:
            scheduler.forget(id)
        left = everything(scheduler, tmp_path)
        assert SECRET in left
        scheduler.forget(ids[-1])
        assert SECRET not in everything(scheduler, tmp_path)
        after = scheduler.summary()
        assert (after.ratio, after.tasks, after.reports) == (before.ratio, before.tasks, before.reports)
        assert fold_of(scheduler).state.learned.features[0, 0] < 20
        assert scheduler.rebuild()
        scheduler.forget(*ids)  # once more
        work(scheduler, first=10, count=10)
        assert scheduler.rebuild()


def test_nothing_learned_is_left_of_what_is_forgotten(address: str) -> None:
    with Scheduler(address, policy=BySign()) as scheduler, Scheduler(policy=BySign(), seed=1) as other:
        scheduler.decide("kind", OPTIONS, features={"x": 1.0}).report(1.0, 1.0)
        scheduler.decide("kind", OPTIONS, features={"x": 2.0}).report(1.0, 1.0)
        scheduler.forget(1)
        other.decide("kind", OPTIONS).report(1.0, 1.0)
        other.decide("kind", OPTIONS, features={"x": 2.0}).report(1.0, 1.0)
        assert fold_of(scheduler).state.learned.features[0].tolist() == [1.0, 2.0, 1.0, 0.0]
        assert scheduler.rebuild()


def test_other_processes_forget_too_and_no_snapshot_remembers(durable: str, tmp_path: Path) -> None:
    with Scheduler(durable, policy=BySign()) as scheduler, Scheduler(durable, policy=BySign()) as other:
        ids = told_secrets(scheduler)
        other.summary(), other.explain(ids[-1])
        for one in (scheduler, other):
            one._transactor.do(lambda batch: batch.replica.want_snapshot())
        snapshot = lambda: scheduler._transactor.store.transact(lambda tx: tx.snapshot(1))  # noqa: E731
        assert snapshot() is not None
        stale = other._transactor.replica
        scheduler.forget(*ids)
        assert snapshot() is None
        other._transactor.save_snapshot(stale)  # one that has not heard of it yet
        stale.want_snapshot()
        other._transactor.save_snapshot(stale)
        assert snapshot() is None
        assert SECRET not in everything(other, tmp_path)
        assert fold_of(other).same_as(fold_of(scheduler))
        assert not fold_of(other).state.learned.features.any()
        assert other.rebuild()
        scheduler._transactor.do(lambda batch: batch.replica.want_snapshot())
        assert snapshot() is not None
    assert find_damage(durable).damage == []
    with Scheduler(durable, policy=BySign()) as again:
        assert again._transactor.replica.saved > 0
        assert again.rebuild()


def test_forgetting_what_there_is_nothing_of_changes_nothing(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler.decide("kind", OPTIONS).report(1.0, 1.0)
        generation = scheduler._transactor.do(lambda batch: batch.header.generation)
        scheduler.forget(1)
        scheduler.forget()
        assert scheduler._transactor.do(lambda batch: batch.header.generation) == generation
        task = scheduler.decide("kind", OPTIONS, features={"x": 1})
        scheduler.forget(task)
        scheduler.forget(task)
        assert scheduler._transactor.do(lambda batch: batch.header.generation) == generation + 1
        task.report(1.0, 1.0)
        assert log_of(scheduler)[-1].features is None
        for unknown in (77, "x", "0"):
            with pytest.raises(UnknownTask):
                scheduler.forget(task, unknown)


def test_all_are_forgotten_or_none(durable: str, tmp_path: Path) -> None:
    with Scheduler(durable, policy=BySign()) as scheduler:
        ids, known = told_secrets(scheduler), fold_of(scheduler).copy()
        with pytest.raises(UnknownTask, match="no task 99 in this scheduler"):
            scheduler.forget(*ids, 99)
        assert everything(scheduler, tmp_path).count(SECRET) > 6
        store = scheduler._transactor.store

        def lost(id: int, settings: str) -> None:
            raise StoreError("the server has gone")

        store.change = lost
        with pytest.raises(StoreError, match="gone"):
            scheduler.forget(*ids)
        del store.change
        assert fold_of(scheduler).same_as(known)
        assert sum(entry.features is not None for entry in log_of(scheduler)) == 18
    assert find_damage(durable).damage == []


def test_what_is_reported_in_the_same_batch_is_forgotten_too(address: str, tmp_path: Path) -> None:
    with Scheduler(address, policy=BySign()) as scheduler:
        task = scheduler.decide("kind", OPTIONS, features={"name": SECRET})
        other = scheduler.decide("kind", OPTIONS)
        requests = [
            Deciding(scheduler, "kind", OPTIONS, features={"name": SECRET}),
            Reporting(task.id, 1.0, 1.0),
            Request(lambda batch: batch.fail(int(other.id), 1.0, SECRET), int(other.id)),
            Request(lambda batch: batch.forget(int(task.id), int(other.id), 3)),
            Reporting(3, 1.0, 1.0),
        ]
        scheduler._transactor.ask_all(requests)
        assert [request.error for request in requests] == [None] * 5
        assert SECRET not in everything(scheduler, tmp_path)
        assert len(log_of(scheduler)) == 3
        assert scheduler.rebuild()
    if address.startswith("sqlite"):
        assert find_damage(address).damage == []


def test_reasons_are_stored_unless_they_are_not_wanted(address: str) -> None:
    with Scheduler(address, store_reasons=False) as scheduler:
        task = scheduler.decide("kind", OPTIONS)
        task.fail(1.0, SECRET)
        task.again().fail(1.0, SECRET)
        assert SECRET not in repr([scheduler.explain(task), scheduler.latest(), log_of(scheduler), scheduler.summary()])
        scheduler.change(store_reasons=True)
        scheduler.decide("kind", OPTIONS).fail(1.0, "known")
        assert scheduler.latest()[0].reason == "known"
        scheduler.change(store_reasons=False)
        scheduler.decide("kind", OPTIONS).fail(1.0, SECRET)
        assert scheduler.latest()[0].reason is None
        for bad in ("no", 0):
            with pytest.raises(BadParameter, match=r"store_reasons = .*; it must be True or False"):
                scheduler.change(store_reasons=bad)


def test_a_scheduler_is_opened_with_the_reasons_setting_that_it_has(sqlite: str) -> None:
    with Scheduler(sqlite), Scheduler(sqlite, store_reasons=True):
        pass
    with pytest.raises(BadParameter, match=r"has store_reasons True, not False; leave it out, or switch with"):
        Scheduler(sqlite, store_reasons=False)


@pytest.mark.parametrize("more", ['"forgotten": -1', '"forgotten": 1.0', '"store_reasons": 1'])
def test_settings_that_nobody_wrote_are_refused(more: str) -> None:
    with pytest.raises(ValueError, match="a value that settings cannot have"):
        settings_from(f'{{"policy": 1, "overhead": 0.0, "retired": [], {more}}}')


# history


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_an_export_tells_features_and_a_scheduler_learns_from_them(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{ending}"
    with Scheduler(policy=BySign()) as scheduler, Scheduler(policy=BySign()) as other:
        work(scheduler)
        count = scheduler.export(path)
        assert other.load(path) == count
        assert [entry.features for entry in log_of(other)] == [entry.features for entry in log_of(scheduler)]
        assert fold_of(other).feature_numbers == fold_of(scheduler).feature_numbers
        learned, same = fold_of(other).state.learned.features, fold_of(scheduler).state.learned.features
        assert learned.tobytes() == same.tobytes()
        assert other.load(path) == 0
        other.forget(1, 2, 3)
        assert other.load(path) == 0  # and it does not remember
        assert log_of(other)[1].features is None
        assert other.rebuild()


def test_any_column_of_a_file_can_be_a_feature(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(
        "task_type,option,reward,cost,n_clauses,feature.family,feature.gpu\n"
        "sat,a,1,2,12,crypto,true\nsat,b,0,2,,7,\nsat,b,0,2,nan,,\nsat,b,0,2,1.5,,\nsat,b,0,2,1.5,,\n"
    )
    with Scheduler(policy=BySign(), history=path, history_columns={"feature.clauses": "n_clauses"}) as scheduler:
        told = [entry.features and json.loads(entry.features) for entry in log_of(scheduler)]
        expected = [{"family": "crypto", "gpu": True, "clauses": 12}, {"family": 7}, None, *[{"clauses": 1.5}] * 2]
        assert told == expected
        assert scheduler.load(path, {"feature.clauses": "n_clauses"}) == 0


def test_features_in_a_file_may_be_objects_or_texts(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    row = {"task_type": "sat", "option": 1, "reward": 1.0, "cost": 1.0}
    told = [{"x": 1, "none": None}, '{"y": "ü"}', None, ""]
    path.write_text("".join(json.dumps(row | {"features": one, "feature.z": 3}) + "\n" for one in told), "utf-8")
    with Scheduler(history=path) as scheduler:
        known = [json.loads(entry.features or "") for entry in log_of(scheduler)]
        assert known == [{"x": 1, "z": 3}, {"y": "ü", "z": 3}, {"z": 3}, {"z": 3}]


@pytest.mark.parametrize("told", ["[1]", "{", 7, {"x": [1]}, {"": 1}])
def test_bad_features_in_a_file_are_refused_with_their_row(told: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    row = {"task_type": "sat", "option": 1, "reward": 1.0, "cost": 1.0}
    path.write_text("".join(json.dumps(row | {"features": one}) + "\n" for one in (None, told)))
    with Scheduler() as scheduler:
        with pytest.raises(BadTable, match=r"old\.jsonl, row 2: "):
            scheduler.load(path)
        assert log_of(scheduler) == []


def test_a_file_with_too_many_features_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worthwhile.live.scheduler.LOADED_AT_ONCE", 10)
    path = tmp_path / "old.jsonl"
    row = {"task_type": "sat", "option": 1, "reward": 1.0, "cost": 1.0}
    path.write_text("".join(json.dumps(row | {"features": {f"x{number}": 1}}) + "\n" for number in range(257)))
    with Scheduler() as scheduler:
        with pytest.raises(BadTask, match="256 are allowed"):
            scheduler.load(path)
        assert log_of(scheduler) == []
        assert scheduler._transactor.do(lambda batch: batch.replica.features.texts) == []


@pytest.mark.parametrize("forget_first", [True, False])
def test_forgetting_beside_a_decision_counts_no_task_as_stopped(forget_first: bool) -> None:
    with Scheduler(seed=1) as scheduler:
        scheduler.decide("k", ["x", "y"], features={"a": 1}).report(1.0, 1.0)
        running = scheduler.decide("k", ["x", "y"])
        requests = [Request(lambda batch: batch.forget(1)), Deciding(scheduler, "k", ["x", "y"])]
        scheduler._transactor.commit(requests if forget_first else requests[::-1])
        assert [request.error for request in requests] == [None, None]
        pending = {one.option: one.running for one in scheduler.explain(requests[1].answer).options}
        assert pending[running.option] == 1
        assert sum(pending.values()) == 1


def test_a_number_of_the_users_own_class_is_what_it_was_made_of() -> None:
    class Odd(float):
        def __float__(self) -> float:
            return math.nan

    with Scheduler() as scheduler:
        scheduler.decide("k", ["x"], features={"a": Odd(3.0)})
        assert scheduler.latest(1)[0].features == {"a": 3.0}
