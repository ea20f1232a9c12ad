"""What somebody wants to know at one look: does it pay, is anything wrong, what was learned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from worthwhile.formatting import counted, shown
from worthwhile.live.gain import OF, SHADOW, GainSummary, signed, span
from worthwhile.live.summary import KindSummary, Summary
from worthwhile.proof.confidence import FIRST

NO_BASELINE = (
    "Say what tasks would take without a scheduler, and hold a few of them out: then the gain is measured, not guessed."
)
MOST_LEARNED = 4  # kinds


class Answer(NamedTuple):
    """To one question: in a word, whether that is good, bad or open, and what it rests on."""

    name: str
    question: str
    answer: str
    style: str
    says: list[str]
    setting: str = ""  # that would help


def answers(summary: Summary) -> list[Answer]:
    return [pays(summary), wrong(summary), learned(summary)]


def pays(summary: Summary) -> Answer:
    """The gain over the baseline with its interval, or what is missing for that."""
    question, gain = ("pays", "Does it pay?"), summary.gain
    if gain is None:
        return Answer(*question, "No baseline: name one", "open", [NO_BASELINE], "baseline")
    if gain.gain is not None:
        now, always = span(gain.gain.low, gain.gain.high), span(gain.gain.always_low, gain.gain.always_high)
        style = "good" if gain.gain.low > 0.0 else "bad" if gain.gain.high < 0.0 else "open"
        measured = f"{now} {OF[gain.measure]} against {gain.baseline}, from {counted(gain.held_out, 'held-out task')}"
        says = [measured, f"{always} whenever you look", *left_out(gain)]
        return Answer(*question, signed(gain.gain.value), style, says)
    if gain.holdout >= 1.0:
        return Answer(*question, "Not known yet", "open", [f"In the shadow: {SHADOW}."])
    if not gain.holdout:
        missing = f"No task is held out: let a few take the baseline, {gain.baseline}, to compare."
        return Answer(*question, "Not known yet", "open", [missing], "holdout")
    missing = f"Too few tasks to compare with {gain.baseline}: {gain.held_out:,} held out and {gain.decided:,} decided"
    return Answer(*question, "Not known yet", "open", [f"{missing}, where both differ; {FIRST} of each are needed."])


def left_out(gain: GainSummary) -> Iterator[str]:
    """Tasks from which the gain could not be measured."""
    if gain.guarded:
        yield f"the guard took the baseline for {counted(gain.guarded, 'task')}"
    if gain.not_held_out:
        yield f"{counted(gain.not_held_out, 'task')} could not be held out or guarded"


def wrong(summary: Summary) -> Answer:
    """How many warnings there are, and how much came to nothing."""
    bad = [(summary.failed, "failed attempt"), (summary.expired, "expired task")]
    says = [counted(count, what) for count, what in bad if count]
    if summary.warnings:
        answer = f"{counted(len(summary.warnings), 'thing')} to look at"
        return Answer("wrong", "Is anything wrong?", answer, "bad", says or ["Above, with what can be done."])
    return Answer("wrong", "Is anything wrong?", "Nothing", "good", says or ["No task has failed or expired."])


def learned(summary: Summary) -> Answer:
    """How many kinds are settled, and what is best for those with the most reports."""
    question, kinds = ("learned", "What was learned?"), [kind for kind in summary.kinds if kind.reports]
    if not kinds:
        return Answer(*question, "Nothing yet", "open", ["Nothing has been reported."])
    settled, first = summary.settled_kinds, sorted(kinds, key=lambda kind: -kind.reports)[:MOST_LEARNED]
    answer = f"{settled} of {counted(len(summary.kinds), 'kind')} settled"
    return Answer(*question, answer, "good" if settled == len(summary.kinds) else "open", [*map(best, first)])


def best(kind: KindSummary) -> str:
    if kind.winner is None:
        return f"{kind.kind}: {kind.verdict}"
    return f"{kind.kind}: {shown(kind.winner)}{'' if kind.settled else ', so far'}"
