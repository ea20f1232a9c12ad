"""Live: `decide` picks an option for a real task, `report` says later what came of it, both stored for good.

Any number of threads and processes may use one scheduler; all learn from one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from worthwhile.errors import BadParameter
from worthwhile.goals.goal import Floor, Goal
from worthwhile.live import explain as explaining
from worthwhile.live import overview
from worthwhile.live.evaluate import Evaluation, evaluate
from worthwhile.live.history import check_features, look_up, table_at, take_in, write_table
from worthwhile.live.history_files import read_history
from worthwhile.live.labels import declared_of
from worthwhile.live.promotion import Promotion, promotion, share_to_set
from worthwhile.live.requests import LEASE, Deciding, Reporting, Retrying, cancelling, failing, observing
from worthwhile.live.settings import settings_change
from worthwhile.live.summary import Summary
from worthwhile.live.task import Task
from worthwhile.live.transactor import Transactor
from worthwhile.live.validation import (
    Option,
    at_least_one,
    check_text,
    not_negative,
    number_of,
    option_text,
    task_number,
    worth,
)
from worthwhile.policies.base import Policy
from worthwhile.policies.features import Feature

LOADED_AT_ONCE = 1000  # rows of a file


class Scheduler:
    """Decides for real tasks and learns from their reports; what is in the file `history` is learned first, once.

    >>> scheduler = Scheduler()  # in memory; Scheduler("sqlite:///tasks.db") keeps everything
    >>> task = scheduler.decide("weather", options=[1, 5, 10])
    >>> task.report(reward=0.9, cost=3.2)
    >>> scheduler.summary().ratio
    0.28125
    """

    def __init__(
        self,
        url: str | Path | None = None,
        name: str = "default",
        policy: str | Policy | None = None,
        *,
        overhead: float | None = None,
        failed_reward: float | None = None,
        store_reasons: bool | None = None,
        goal: str | Goal | None = None,
        floor: Floor | None = None,
        budget: float | None = None,
        baseline: Option | Mapping[str, Option] = None,
        holdout: float | None = None,
        explore: float | None = None,
        guard: float | None = None,
        guard_error: float | None = None,
        reward_unit: str | None = None,
        cost_unit: str | None = None,
        lease: float = LEASE,
        seed: int | None = None,
        engine: str = "python",
        create: bool = True,
        history: str | Path | None = None,
        history_columns: Mapping[str, str] | None = None,
    ) -> None:
        if history is None and history_columns is not None:
            raise BadParameter("history_columns says what a file calls its columns; give the file: history=…")
        self.name, self.lease = check_text("scheduler", name, BadParameter), not_negative("lease", lease)
        # for the other parts of this library: transactions of their own on the same store
        self._transactor = Transactor(str(url) if isinstance(url, Path) else url, name, engine, create)
        try:
            if failed_reward is not None:
                worth("failed_reward", failed_reward)  # to take it away is for `change`
            wanted = settings_change(
                policy, overhead, failed_reward, store_reasons, goal, floor, budget, baseline, holdout, explore, guard,
                guard_error, reward_unit, cost_unit,
            )  # fmt: skip
            self._transactor.find_or_create(wanted, seed)
            if history is not None:
                self.load(history, history_columns)
        except BaseException:
            self._transactor.store.close()
            raise

    def decide(
        self,
        kind: str,
        options: Sequence[Option],
        *,
        features: Mapping[str, Feature] | None = None,
        key: str | None = None,
        lease: float | None = None,
        usual: Option = None,
    ) -> Task:
        """Choose an option for a task of this kind. The same key gives the same task, however often it is asked.

        `features` says more of the task than its kind, by name: numbers, true and false, texts; None if unknown.
        `usual` is what it would take without a scheduler, if that is not the baseline of its kind.
        """
        task: Task = self._transactor.ask(Deciding(self, kind, options, key, lease, features, usual))
        return task

    def task(
        self,
        kind: str,
        options: Sequence[Option],
        *,
        features: Mapping[str, Feature] | None = None,
        key: str | None = None,
        lease: float | None = None,
        usual: Option = None,
    ) -> Task:
        """The same as `decide`, for a `with` block that sets task.reward."""
        return self.decide(kind, options, features=features, key=key, lease=lease, usual=usual)

    def report(
        self, id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
    ) -> None:
        """What came of a task. The same report again changes nothing; another one is refused.

        `attempt` says which one at the task, counted from 0; without it, the latest. A task's own methods know it.
        """
        self._transactor.ask(Reporting(id, reward, cost, attempt))

    def fail(self, id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> None:
        """A task has failed: at this cost or, if nobody knows, at what such tasks cost on average."""
        self._transactor.ask(failing(id, cost, reason, attempt))

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if the task showed it on the side."""
        self._transactor.ask(observing(id, option, reward, cost))

    def cancel(self, id: str | int, attempt: int | None = None) -> None:
        """The task will not report; it no longer counts as running."""
        self._transactor.ask(cancelling(id, attempt))

    def again(self, id: str | int, after: int | None = None) -> Task:
        """Another attempt at a task that has failed: the same task, with an option that has not failed on it.

        `after` is the attempt that it follows, counted from 0: asked twice, the same attempt is the answer.
        """
        task: Task = self._transactor.ask(Retrying(self, id, after))
        return task

    def announce(self, kinds: Sequence[str] = (), options: Sequence[Option] = ()) -> None:
        """Number kinds and options in this order now, for policies that know them by number."""
        texts = [option_text(option) for option in options]
        names = [check_text("kind", kind) for kind in kinds]
        self._transactor.do(lambda batch: batch.announce(names, texts))

    def declare(self, options: Mapping[str, Sequence[Option]]) -> None:
        """Say which kinds there are, and the options of each: from now on others are refused, as `Undeclared`.

        It takes the place of what was declared before; `declare({})` allows everything again. What was decided stays.
        """
        declared = declared_of(options)
        self._transactor.do(lambda batch: batch.declare(declared))

    def retire(self, option: Option, kind: str | None = None) -> None:
        """Never choose this option again, for one kind or for all; also one that has never been on offer yet."""
        text, where = option_text(option), None if kind is None else check_text("kind", kind)
        self._transactor.do(lambda batch: batch.retire(where, text))

    def restore(self, option: Option, kind: str | None = None) -> None:
        """Undo `retire`, and give a benched option another try."""
        text, where = option_text(option), None if kind is None else check_text("kind", kind)
        self._transactor.do(lambda batch: batch.restore(where, text))

    def change(
        self,
        policy: str | Policy | None = None,
        overhead: float | None = None,
        failed_reward: float | str | None = None,
        store_reasons: bool | None = None,
        goal: str | Goal | None = None,
        floor: Floor | None = None,
        budget: float | None = None,
        baseline: Option | Mapping[str, Option] = None,
        holdout: float | None = None,
        explore: float | None = None,
        guard: float | str | None = None,
        guard_error: float | None = None,
        reward_unit: str | None = None,
        cost_unit: str | None = None,
    ) -> None:
        """Go on with another policy, which learns from the whole history first, or with another cost per task.

        From now on a failure is a result worth `failed_reward`; "none" undoes that. With `store_reasons=False` it is no
        longer stored why tasks fail. `baseline`, `holdout`, `explore` and `guard` hold from the next task on; an empty
        mapping takes the baseline away, "none" the guard. A goal replaces the one before, with its floor and its
        budget; goal="ratio" alone drops both. Units are for people; an empty one takes it away.
        """
        change = settings_change(
            policy, overhead, failed_reward, store_reasons, goal, floor, budget, baseline, holdout, explore, guard,
            guard_error, reward_unit, cost_unit,
        )  # fmt: skip
        self._transactor.do(partial(self._transactor.change, change))

    def forget(self, *tasks: Task | explaining.TaskLine | str | int) -> None:
        """Take the features of tasks, and the reasons why they failed, out of the store, for good.

        Every process then reads the log again, so that nothing of them is left in what was learned: give many at once.
        """
        numbers = [number_of(task) for task in tasks]
        self._transactor.do(lambda batch: batch.forget(*numbers))

    def summary(self) -> Summary:
        """How it stands: the ratio so far, θ, every option of every kind, who wins, and what to look at.

        The first call reads the whole log, which takes a while if it is long; later ones read what has come since.
        """
        return overview.summary(self.name, self._transactor.statistics)

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of what the dashboard shows: a matplotlib figure, or written to a file (.png, .svg, .pdf)."""
        from worthwhile.live import figure

        return figure.plot(self.summary(), self._transactor.statistics.series(figure.POINTS), path)

    def evaluate(self, rule: str | None = None, *, policy: str | Policy | None = None) -> Evaluation:
        """What a rule (always:OPTION, baseline, greedy, random) or a policy would have earned per cost on this log.

        It reads the whole log. What the log shows or chance allows is used; the rest is a model, and labelled as such.
        """
        return evaluate(self._transactor, rule, policy)

    def promote(self, share: float | None = None) -> Promotion:
        """What share of the tasks the scheduler should decide next; given one, it does from now on.

        The others take the baseline: with `holdout=1`, all of them do.
        """
        holdout = share_to_set(share)
        if holdout is not None:
            promotion(self.summary().gain, was_set=False)  # refuses what has no baseline
            self.change(holdout=holdout)
        return promotion(self.summary().gain, was_set=holdout is not None)

    def explain(self, task: Task | explaining.TaskLine | str | int) -> explaining.Explanation:
        """Why that option: everything as it was when the decision was made."""
        number = number_of(task)
        row = self._transactor.do(lambda batch: batch.task(number), number)
        fold = self._transactor.fold_at(row.policy, row.seen) if row.policy else None
        return self._transactor.do(lambda batch: explaining.explanation(row, fold, batch))

    def tasks(self, ids: Sequence[str | int]) -> list[explaining.TaskLine]:
        """Tasks by id."""
        numbers = [task_number(id) for id in ids]
        return self._transactor.do(lambda batch: explaining.tasks(batch, numbers))

    def latest(self, count: int = 20) -> list[explaining.TaskLine]:
        """The latest tasks, newest first."""
        most = at_least_one("count", count)
        return self._transactor.do(lambda batch: explaining.latest(batch, most))

    def rebuild(self) -> bool:
        """Fold the whole log again, from its start: whether that gives what this process knows, to the bit."""
        known = self._transactor.do(lambda batch: batch.replica.fold.copy())
        empty = self._transactor.do(lambda batch: batch.replica.new_fold(known.number))
        return self._transactor.refold(empty, known.position).same_as(known)

    def export(self, path: str | Path) -> int:
        """Write the log as a table (.parquet, .csv, .jsonl) that `replay` can read; how many rows it has."""
        return write_table(table_at(path), self._transactor.lines())

    def load(self, path: str | Path, columns: Mapping[str, str] | None = None) -> int:
        """Learn from recorded history: columns task_type, item_id, option, reward, cost. How many rows were new.

        `columns` has what the file calls them, like {"reward": "score", "feature.clauses": "n"}. Options that read as
        JSON (5, true, null) are taken as such. The same file again adds nothing.
        """
        records = read_history(Path(path), columns)
        self._transactor.do(partial(check_features, records=records))
        portions = [records[start : start + LOADED_AT_ONCE] for start in range(0, len(records), LOADED_AT_ONCE)]
        # all are looked at before the first is taken in: what is refused leaves nothing behind
        new = [portion for portion in portions if self._transactor.do(partial(look_up, records=portion))]
        return sum(self._transactor.do(partial(take_in, records=portion)) for portion in new)

    def close(self) -> None:
        """Keep a snapshot if that saves the next start much, and let go of the store."""
        self._transactor.close()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
