"""What came of tasks that ran: of each one, and of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from worthwhile.live.task import Task
from worthwhile.live.validation import Option

MOST_REASONS = 1000  # that are counted: those that come first are frequent enough


class Finished(NamedTuple):
    """A task at its end: it has reported or, if `failure` says why, failed."""

    task: Task  # with the option of the last attempt
    reward: float | None  # None if it failed and failures are worth no number
    cost: float  # of all attempts that were made here
    failure: str | None = None
    earlier: tuple[str, ...] = ()  # why the attempts before the last one failed
    tried: tuple[Option, ...] = ()  # their options


@dataclass
class Worked:
    """What `work` did; `skipped` had ended before, others have done those `elsewhere` meanwhile.

    `dropped` were begun here and do not count, as others have taken them over or have reported them first.
    """

    reported: int = 0
    failed: int = 0
    skipped: int = 0
    elsewhere: int = 0
    dropped: int = 0
    tried_again: int = 0  # attempts that followed a failed one
    reward: float = 0.0
    cost: float = 0.0  # failures included
    reasons: dict[str, int] = field(default_factory=dict)  # how often attempts failed for each
    interrupted: bool = False

    @property
    def done(self) -> int:
        """Tasks that have ended here, in whatever way."""
        return self.reported + self.failed

    def count(self, finished: Finished) -> None:
        """A task has ended."""
        self.reported += finished.failure is None
        self.failed += finished.failure is not None
        self.reward += finished.reward or 0.0
        self.cost += finished.cost
        self.tried_again += len(finished.earlier)
        for why in finished.earlier if finished.failure is None else (*finished.earlier, finished.failure):
            if why in self.reasons or len(self.reasons) < MOST_REASONS:
                self.reasons[why] = self.reasons.get(why, 0) + 1


def most_frequent(reasons: dict[str, int]) -> str:
    """Why most attempts failed, in words for people; empty if none has."""
    if not reasons:
        return ""
    why = max(reasons, key=lambda reason: reasons[reason])
    return f"{reasons[why]:,} × {why}" if len(reasons) > 1 or reasons[why] > 1 else why
