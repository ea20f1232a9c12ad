"""The curves of a kind: what its latest runs had brought and cost after each step, as the log has them."""

from __future__ import annotations

from worthwhile.live.batch import Batch
from worthwhile.live.replica import PORTION
from worthwhile.live.stopping import RunCurve
from worthwhile.live.stores.base import RESTORES, RESULT, LogRow

MOST_RUNS = 500  # that are kept of a kind, the latest


class RunCurves:
    """Reads the log as it grows. Each length that a run has passed is an observation of the option that stops there."""

    def __init__(self) -> None:
        self.position = 0
        self.kinds: dict[int, dict[int, RunCurve]] = {}  # by kind and task, by option

    def read(self, batch: Batch) -> bool:
        """The next entries; whether these were all."""
        replica = batch.replica
        rows = batch.tx.reports(replica.id, self.position, PORTION)
        for row in rows:
            self.take(row)
            self.position = row.number
        return len(rows) < PORTION

    def take(self, row: LogRow) -> None:
        if row.damage or row.outcome != RESULT or row.observed <= RESTORES or row.reward is None:
            return
        runs = self.kinds.setdefault(row.kind, {})
        runs.setdefault(row.task, {})[row.option] = row.reward, row.cost
        if len(runs) > MOST_RUNS:
            del runs[next(iter(runs))]

    def of(self, kind: int, lengths: list[int]) -> list[RunCurve]:
        """By the place of a length among these, shortest first."""
        place = {option: index for index, option in enumerate(lengths)}
        return [
            {place[option]: values for option, values in curve.items() if option in place}
            for curve in self.kinds.get(kind, {}).values()
        ]
