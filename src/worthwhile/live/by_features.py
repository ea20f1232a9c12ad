"""What features of a task led to, as data with names and in words; a policy knows only their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worthwhile.formatting import counted, printable, shown
from worthwhile.live.replica import Replica
from worthwhile.live.validation import Option
from worthwhile.policies import features as policies
from worthwhile.policies.features import Feature

UNCHANGED = "its features changed nothing"


@dataclass(frozen=True)
class Condition:
    """Something of a task that mattered: its feature is above a number, up to one, has a value, is missing, or not."""

    feature: str
    above: float | None = None
    up_to: float | None = None
    value: Feature = None
    missing: bool | None = None

    def __str__(self) -> str:
        name = printable(self.feature)
        if self.value is not None:
            return f"{name} = {shown(self.value)}"
        if self.above is not None and self.up_to is not None:
            return f"{bound(self.above)} < {name} ≤ {bound(self.up_to)}"
        if self.above is not None:
            return f"{name} > {bound(self.above)}"
        return f"{name} ≤ {bound(self.up_to)}" if self.up_to is not None else f"{name} is {self.is_there}"

    @property
    def is_there(self) -> str:
        return "missing" if self.missing else "known"


@dataclass(frozen=True)
class ByFeatures:
    """What the features of a task led to: a choice other than the usual one, a try of one that may be best here, or
    nothing. The usual option is the one that is best overall for the kind, of those on offer."""

    effect: str  # choice, try, nothing
    usual: Option
    conditions: list[Condition]  # of a choice: what mattered, most of all first
    like: float  # reports of the option taken that are like the task, on average over trees
    gain: float  # reward − θ·cost that was expected of it beyond the usual option
    believed: float  # how much of what features foretell, from 0 to 1


def bound(number: float) -> str:
    """Four digits, or all of them before the point."""
    return f"{number:,.0f}" if 1000.0 <= abs(number) < 1e15 else f"{number:.4g}"


def named(told: policies.ByFeatures, features: Mapping[str, Feature], replica: Replica) -> ByFeatures:
    """The same with names, and with what the task has."""
    usual = None if told.usual < 0 else replica.option(told.usual)
    conditions = [condition(one, replica.features.texts[one.feature], features) for one in told.conditions]
    return ByFeatures(told.effect, usual, conditions, told.like, told.gain, told.believed)


def condition(told: policies.Condition, name: str, features: Mapping[str, Feature]) -> Condition:
    """One of them: true and false are no numbers to people."""
    value = features.get(name)
    if told.equal or (isinstance(value, bool) and told.missing is None):
        return Condition(name, value=value)
    between = told.above is not None or told.up_to is not None
    return Condition(name, told.above, told.up_to, missing=None if between else told.missing)


def why_by_features(told: ByFeatures, option: Option) -> str:
    """Why an option was taken, if that was for the features of the task; empty if they changed nothing."""
    like, instead = counted(round(told.like), "report"), f"instead of the usual {shown(told.usual)}"
    if told.effect == policies.TRY:
        return f"a try at random: it may be best where nobody has looked; {like} like this task, {instead}"
    if told.effect == policies.CHOICE:
        what = " and ".join(map(str, told.conditions)) or "for its features"
        return f"{what}: {shown(option)} {instead}, by {like} like it"
    return ""
