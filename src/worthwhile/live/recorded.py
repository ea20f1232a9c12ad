"""Rows of history from elsewhere: checked, each new, known already, or in contradiction to what is known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from worthwhile.errors import AlreadyReported, BadFeedback
from worthwhile.live.stores.base import LOST, RESULT
from worthwhile.live.validation import attempt_number, check_text, feedback, not_negative, option_text, reason_text
from worthwhile.tables import OUTCOMES


class Recorded(NamedTuple):
    """A row of history from elsewhere; the key says which task it belongs to."""

    key: str
    kind: str
    option: str
    reward: float | None  # None for a failure that is worth no number
    cost: float
    overhead: float
    observed: bool
    outcome: str = OUTCOMES[RESULT]
    reason: str = ""
    attempt: int = 0  # at the task
    place: str = ""  # where it stands, for messages


Which = tuple[str, int | str]  # a key, and an attempt at that task or another option that was observed


def recorded(
    key: str,
    kind: str,
    option: Any,
    reward: float | None,
    cost: float,
    overhead: float = 0.0,
    observed: bool = False,
    outcome: str = OUTCOMES[RESULT],
    reason: str = "",
    attempt: int = 0,
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
    cost, overhead = feedback("cost", cost), not_negative("overhead", overhead)
    why, which = reason_text(reason) or "", attempt_number(attempt)
    return Recorded(key, kind, option, reward, cost, overhead, observed, outcome, why, which, place)


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
    if known is None or (record.outcome == lost) != (known.outcome == lost):
        return known is None or known.outcome == lost  # what was lost may report later, and rows come in any order
    # the overhead of an observation is that of its task, whatever its row says
    fields = ("option", "reward", "cost", "outcome", *(() if record.observed else ("overhead",)))
    for field in fields:
        now, before = getattr(record, field), getattr(known, field)
        if now != before:
            where, first = f"{record.place}: " * bool(record.place), known.place or "what was imported before"
            raise AlreadyReported(
                f"{where}key {record.key!r} has {field} {now}, in {first} it has {field} {before}; a row counts once. "
                "Another task needs another item_id (key); corrected rows need a scheduler that has not learned from "
                "the old ones"
            )
    return False


def as_option(text: str) -> Any:
    """5 is a number, true is true, and what is no JSON scalar is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    infinite = isinstance(value, float) and not math.isfinite(value)
    return text if infinite or isinstance(value, list | dict) else value
