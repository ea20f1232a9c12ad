"""Rows of history from elsewhere: checked, each new, known already, or in contradiction to what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from worthwhile.errors import AlreadyReported, BadFeedback, BadTask
from worthwhile.live.stores.base import LOST, RESULT
from worthwhile.live.validation import (
    attempt_number,
    check_text,
    feature_text,
    feedback,
    not_negative,
    option_text,
    reason_text,
)
from worthwhile.tables import OUTCOMES


class Recorded(NamedTuple):
    """A row of history from elsewhere; the key says which task it belongs to."""

    key: str
    kind: str
    option: str
    reward: float | None  # None for a failure that is worth no number
    cost: float
    overhead: float | None  # None for that of the scheduler that it is taken into
    observed: bool
    outcome: str = OUTCOMES[RESULT]
    reason: str = ""
    attempt: int = 0  # at the task
    features: str | None = None  # of the task, JSON
    place: str = ""  # where it stands, for messages

    @property
    def where(self) -> str:
        """The beginning of a message."""
        return f"{self.place}: " if self.place else ""


Which = tuple[str, int | str]  # a key, and an attempt at that task or another option that was observed


def recorded(
    key: str,
    kind: str,
    option: Any,
    reward: float | None,
    cost: float,
    overhead: float | None = None,
    observed: bool = False,
    outcome: str = OUTCOMES[RESULT],
    reason: str = "",
    attempt: int = 0,
    features: Mapping[str, Any] | None = None,
    place: str = "",
) -> Recorded:
    """A row of history, checked."""
    option, kind, key = option_text(option), check_text("kind", kind), check_text("key", key)
    if outcome not in OUTCOMES or (observed and outcome != OUTCOMES[RESULT]):
        raise BadFeedback(
            f"outcome = {outcome!r}; it must be one of {', '.join(OUTCOMES)}, and of another option result"
        )
    if reward is not None or outcome == OUTCOMES[RESULT]:
        reward = feedback("reward", reward)
    cost, overhead = feedback("cost", cost), None if overhead is None else not_negative("overhead", overhead)
    why, which, known = reason_text(reason) or "", attempt_number(attempt), feature_text(features)
    return Recorded(key, kind, option, reward, cost, overhead, observed, outcome, why, which, known, place)


def which(record: Recorded) -> Which:
    """What a row tells of: nothing tells of the same twice."""
    return record.key, record.option if record.observed else record.attempt


def count_new(records: Iterable[Recorded], known: dict[Which, Recorded]) -> int:
    """How many of these rows are not known, nor told by an earlier one of them; what contradicts is refused."""
    new = 0
    for record in records:
        if is_new(record, known.get(which(record))):
            known[which(record)] = record
            new += 1
    return new


def is_new(record: Recorded, known: Recorded | None) -> bool:
    """Whether a row adds something; one that says otherwise than before is refused."""
    lost = OUTCOMES[LOST]
    if known is not None:
        check_kind(record, known.kind)
        if record.option != known.option:  # of one attempt: also if it was lost at first
            raise contradiction(record, known, "option")
    if known is None or (record.outcome == lost) != (known.outcome == lost):
        return known is None or known.outcome == lost  # what was lost may report later, and rows come in any order
    # the overhead of an observation is that of its task, whatever its row says
    untold = record.observed or record.overhead is None or known.overhead is None
    fields = ("reward", "cost", "outcome", *(() if untold else ("overhead",)))
    for field in fields:
        if getattr(record, field) != getattr(known, field):
            raise contradiction(record, known, field)
    return False


def contradiction(record: Recorded, known: Recorded, field: str) -> AlreadyReported:
    """What a row says, and what was said before."""
    now, before = (f"{field} {shown_value(getattr(row, field))}" for row in (record, known))
    said = f"{record.where}key {record.key!r} now has {now}, but {before} in {known.place or 'what is known already'}"
    remedy = "if it is another task, give it another item_id; if the old value was wrong, import into a new scheduler"
    return AlreadyReported(f"{said}; a row counts once: {remedy}")


def shown_value(value: float | str | None) -> str:
    return "none" if value is None else f"{value}"


def check_kind(record: Recorded, kind: str) -> None:
    """Refuse a row under the key of a task of another kind."""
    if record.kind != kind:
        said = f"{record.where}key {record.key!r} is of a task of kind {kind!r}, now of kind {record.kind!r}"
        raise BadTask(f"{said}; use other keys")
