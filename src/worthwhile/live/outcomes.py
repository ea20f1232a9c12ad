"""What came of tasks: results, failures, losses and side observations, each logged once and learned from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from worthwhile.errors import AlreadyCancelled, AlreadyFailed, AlreadyReported, BadFeedback
from worthwhile.live.rows import Rows
from worthwhile.live.stores.base import (
    FAILED,
    LOST,
    NO_POLICY,
    OWN,
    REPLACES,
    RESTORED,
    RESTORES,
    RESULT,
    WORTH_A_NUMBER,
    LogRow,
    TaskRow,
)
from worthwhile.live.totals import NOBODY_KNOWS, average_cost
from worthwhile.live.validation import both, feedback, option_text

COUNTS_ONCE, FAILS_ONCE = "a report counts once", "a failure counts once"
FOLLOWED = "has been followed by another; its result cannot count any more"
LEASE_ENDED = "no report by the end of its lease"
MOST_LOST, LOOKS_EVERY = 200, 1.0  # tasks in a transaction; seconds


class Outcomes(Rows):
    """Reports and all that may be said in place of one."""

    def report(self, number: int, reward: Any, cost: Any, attempt: int | None = None) -> TaskRow:
        """Reward, cost or both; learned from when both are there. `attempt` is the latest one unless it says which."""
        if reward is None and cost is None:
            raise BadFeedback(f"task {number}: neither a reward nor a cost; report at least one")
        row, entry = self.task(number), None
        reward, cost = both(reward, cost)
        if (
            row.report is not None
            or row.reward is not None
            or row.cost is not None
            or row.cancelled
            or row.attempts is not None
            or attempt
        ):
            return self.report_further(row, reward, cost, attempt)
        if reward is not None and cost is not None:
            entry = self.log_report(row, reward, cost)
        row = row.with_report(reward, cost, entry)
        self.update(row)
        return row

    def report_further(
        self, row: TaskRow, reward: float | None, cost: float | None, attempt: int | None = None
    ) -> TaskRow:
        """A report of a task that something was said of before, that was taken for lost, or that is tried again."""
        if self.earlier(row, attempt) is not None:
            raise AlreadyFailed(f"attempt {attempt} of task {row.task} {FOLLOWED}")
        if row.outcome == FAILED:
            raise AlreadyFailed(f"task {row.task} has failed; it takes no report")
        reward, cost = self.completed(row, reward, cost)
        if (reward, cost) == (row.reward, row.cost):
            return row
        if reward is None or cost is None:
            row = row._replace(reward=reward, cost=cost)
        else:
            entry = self.log_outcome(row, reward, cost, RESULT, None)
            row = row._replace(reward=reward, cost=cost, report=entry, outcome=RESULT)
        self.update(row)
        return row

    def earlier(self, row: TaskRow, attempt: int | None) -> dict[str, Any] | None:
        """What came of an attempt that others have followed; None if it is the latest that is told of."""
        if attempt is None or attempt == row.attempt:
            return None
        if attempt > row.attempt:
            raise BadFeedback(f"task {row.task}: attempt {attempt} was never made, the latest is {row.attempt}")
        told: dict[str, Any] = json.loads(row.attempts or "[]")[attempt]
        return told

    def fail(
        self,
        number: int,
        cost: float | None,
        reason: str | None,
        worth: float | None = None,
        attempt: int | None = None,
    ) -> TaskRow:
        """It has failed; a part of a report that came before no longer counts. `worth`: in place of `failed_reward`."""
        row = self.task(number)
        if (told := self.earlier(row, attempt)) is not None:
            if cost is None or cost == told["cost"]:
                return row
            raise AlreadyFailed(f"attempt {attempt} of task {number} {FOLLOWED}")
        if row.report is not None and row.outcome == RESULT:
            raise AlreadyReported(f"task {number} has reported already; it cannot fail any more")
        if row.outcome == FAILED:
            if cost is None or cost == row.cost:
                return row
            raise AlreadyFailed(
                f"task {number} has failed already (cost {row.cost:g}), now cost {cost:g}; {FAILS_ONCE}"
            )
        if row.cancelled:
            raise AlreadyCancelled(f"task {number} was cancelled; it cannot fail any more")
        cost = self.usual_cost(row) if cost is None else cost
        reward = self.replica.settings.failed_reward if worth is None else worth
        entry = self.log_outcome(row, reward, cost, FAILED, reason)
        row = row._replace(reward=reward, cost=cost, report=entry, outcome=FAILED)
        self.update(row)
        return row

    def note_losses(self) -> None:
        """Tasks whose leases have ended are lost, but for those that somebody tells of right now."""
        replica, now = self.replica, self.header.now
        kinds, options = len(replica.kinds.texts), len(replica.options.texts)
        told = {request.task for request in self.requests}.union(*(request.tasks for request in self.requests))
        rows = self.tx.lost(replica.id, now, MOST_LOST)
        for row in rows:
            if row.task not in told and row.kind < kinds and row.option < options:
                self.lose(row)
        if self.entries:  # whatever is asked now reads them from the store
            self.tx.add(replica.id, [], [], [*self.changed.values()], [*self.entries])
            self.header.reports += len(self.entries)
            self.entries.clear()
            self.changed.clear()
        replica.look_at = now if len(rows) == MOST_LOST else now + LOOKS_EVERY

    def has_lapsed(self, row: TaskRow) -> bool:
        """Whether its lease has ended, though nobody has noted that yet; what was released is not lost."""
        return not row.ended() and row.lease_end <= self.header.now and row.holder != ""

    def is_retried(self, row: TaskRow) -> bool:
        """Whether there is another attempt already that may still end well."""
        return row.attempts is not None and row.report is None and not self.has_lapsed(row)

    def lose(self, row: TaskRow) -> TaskRow:
        """Its lease has ended, whatever clocks say later; parts of a report stay, the rest may come yet."""
        entry = self.log_outcome(row, self.replica.settings.failed_reward, self.usual_cost(row), LOST, LEASE_ENDED)
        row = row._replace(report=entry, outcome=LOST, lease_end=0.0)
        self.update(row)
        return row

    def next_attempt(self, row: TaskRow, offered: list[int] | None = None) -> TaskRow:
        """The task with its latest attempt among the earlier ones; `offered` to the next, unless that keeps its option.

        Nothing else is known of the next.
        """
        entry = self.entry_of(row)
        attempt = {
            "option": row.option, "cost": entry.cost, "overhead": row.overhead, "reason": entry.reason,
            "outcome": row.outcome, "report": row.report, "next": offered, "probability": row.probability,
            "own": row.own,
        }  # fmt: skip
        attempts = json.dumps([*json.loads(row.attempts or "[]"), attempt], ensure_ascii=False)
        return row._replace(reward=None, cost=None, report=None, outcome=RESULT, attempts=attempts, holder=None)

    def usual_cost(self, row: TaskRow) -> float:
        """What a failure costs: as reported before; else the average, from which the overhead is taken off."""
        if row.cost is not None:
            return row.cost
        if row.outcome == LOST:
            return self.entry_of(row).cost
        average = average_cost(self.replica.fold.state.totals, row.kind, row.option)
        if average is None:
            return NOBODY_KNOWS
        return average - row.overhead if average > row.overhead else average  # there was less overhead before

    def entry_of(self, row: TaskRow) -> LogRow:
        """The entry of the log that says what came of a task."""
        entries = [*self.tx.outcomes(self.replica.id, [row.task]), *self.entries]
        return next(entry for entry in entries if entry.number == row.report)

    def log_outcome(self, row: TaskRow, reward: float | None, cost: float, outcome: int, reason: str | None) -> int:
        """What came of the latest attempt at a task, as an entry of the log; its number."""
        reason = reason if self.replica.settings.store_reasons else None
        number = self.header.reports + len(self.entries) + 1
        entry = row.log_row(number, reward, cost)._replace(observed=OWN - row.attempt, outcome=outcome, reason=reason)
        if row.outcome == LOST:
            entry = instead_of(self.entry_of(row), entry)
        self.log(entry)
        return number

    def log_restored(self, kind: int, option: int) -> None:
        """Somebody has restored an option, as an entry of the log: what every process forgives."""
        number = self.header.reports + len(self.entries) + 1
        self.log(LogRow(number, 0, RESTORES - number, kind, option, None, 1.0, 0.0, 0.0, 0.0, NO_POLICY, RESTORED))

    def log(self, entry: LogRow) -> None:
        """Write an entry of the log, and learn from it."""
        self.touched = True
        self.entries.append(entry)
        self.replica.fold.learn(entry)

    def completed(self, row: TaskRow, reward: float | None, cost: float | None) -> tuple[float | None, float | None]:
        """A report and what was reported before, if they do not contradict."""
        parts = [("reward", row.reward, reward), ("cost", row.cost, cost)]
        before = ", ".join(f"{name} {known:g}" for name, known, _ in parts if known is not None)
        for name, known, value in parts:
            if known is not None and value is not None and known != value:
                now = f"now {name} {value:g}"
                raise AlreadyReported(f"task {row.task} already has feedback ({before}), {now}; {COUNTS_ONCE}")
        if row.cancelled:
            raise AlreadyCancelled(f"task {row.task} was cancelled; it takes no report")
        return row.reward if reward is None else reward, row.cost if cost is None else cost

    def log_report(self, row: TaskRow, reward: float, cost: float) -> int:
        """A task's own report, as an entry of the log; its number."""
        number = self.header.reports + len(self.entries) + 1
        self.log(row.log_row(number, reward, cost))
        return number

    def report_all(self, number: int, reward: Any, cost: Any, observed: Mapping[Any, tuple[Any, Any]]) -> TaskRow:
        """A report with its side observations: all of them or, if one is refused, none."""
        observations = [self.observation(number, option, *values) for option, values in observed.items()]
        row = self.report(number, reward, cost)
        for new in filter(None, observations):
            self.log_observation(row, *new)
        return row

    def observe(self, number: int, option: Any, reward: Any, cost: Any) -> None:
        """A side observation of another option of the same task."""
        new = self.observation(number, option, reward, cost)
        if new is not None:
            self.log_observation(self.rows[number], *new)

    def log_observation(self, row: TaskRow, option: int, reward: float, cost: float) -> None:
        """A side observation that is new, as an entry of the log."""
        number = self.header.reports + len(self.entries) + 1
        entry = row.log_row(number, reward, cost)._replace(
            observed=option, option=option, reward_estimate=0.0, cost_estimate=0.0, policy=NO_POLICY
        )
        self.log(entry)
        self.observed[row.task][option] = reward, cost

    def observation(self, task: int, option: Any, reward: Any, cost: Any) -> tuple[int, float, float] | None:
        """The option's number and the values, checked; None if the log has them already."""
        row, text = self.task(task), option_text(option)
        number = self.replica.options.number.get(text, -1)
        if str(number) not in row.options.split(","):
            raise BadFeedback(f"task {task}: option {text} was not on offer; observe one that was")
        if number == row.option:
            raise BadFeedback(f"task {task}: option {text} is the one that was chosen; report it")
        reward, cost = feedback("reward", reward), feedback("cost", cost)
        known = self.observations(task).get(number)
        if known is not None and known != (reward, cost):
            before = "reward {:g}, cost {:g}".format(*known)
            raise AlreadyReported(f"task {task}, option {text}: already observed ({before}); {COUNTS_ONCE}")
        return (number, reward, cost) if known is None else None

    def observations(self, number: int) -> dict[int, tuple[float, float]]:
        """What is known of a task's other options; read once, for all tasks that this batch knows."""
        if number not in self.observed:
            missing = self.rows.keys() - self.observed.keys()
            self.observed |= {task: {} for task in missing}
            for entry in self.tx.observations(self.replica.id, list(missing)):
                if entry.reward is not None:
                    self.observed[entry.task][entry.observed] = entry.reward, entry.cost
        return self.observed[number]

    def cancel(self, number: int, attempt: int | None = None) -> None:
        """The task will not report, and no longer counts as running; one that was lost does not anyway."""
        row = self.task(number)
        told = self.earlier(row, attempt)
        outcome = row.outcome if told is None else told["outcome"]
        if outcome == LOST:
            return
        if outcome == FAILED:
            raise AlreadyFailed(f"task {number} has failed already; it cannot be cancelled")
        if row.report is not None:
            raise AlreadyReported(f"task {number} has reported already; it cannot be cancelled")
        if not row.cancelled:
            self.update(row._replace(cancelled=1))


def instead_of(loss: LogRow, entry: LogRow) -> LogRow:
    """The entry as one that replaces a loss."""
    return entry._replace(
        observed=entry.observed - OWN + REPLACES,
        reward_estimate=loss.reward or 0.0,
        cost_estimate=loss.cost + loss.overhead,
        policy=NO_POLICY if loss.reward is None else WORTH_A_NUMBER,
    )
