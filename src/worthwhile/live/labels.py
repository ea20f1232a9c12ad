"""What a scheduler is told about names: the units of rewards and costs, and which kinds and options there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter, Undeclared
from worthwhile.live.validation import check_text, option_texts, plain_options, quoted

LONGEST_UNIT = 40  # characters
NEAR_ENOUGH = 0.5  # to be what was meant
MOST_LISTED = 10  # names in a message

Declared = Mapping[str, tuple[str, ...]]  # options as JSON, by kind
ANYTHING: Declared = {}  # nothing was declared


class Units(NamedTuple):
    """What rewards and costs are counted in, for people; empty where nobody said."""

    reward: str = ""
    cost: str = ""

    def in_words(self) -> str:
        return f"reward_unit {self.reward!r} and cost_unit {self.cost!r}"


class UnitsChange(NamedTuple):
    """Units to go on with; None leaves one as it is."""

    reward: str | None = None
    cost: str | None = None

    def applied(self, units: Units) -> Units:
        return Units(*(old if new is None else new for old, new in zip(units, self, strict=True)))

    def contradicts(self, units: Units) -> bool:
        """Whether it says something else than a scheduler has."""
        return self.applied(units) != units


def units_change(reward: Any = None, cost: Any = None) -> UnitsChange:
    """Units from outside, checked."""
    return UnitsChange(unit_of("reward_unit", reward), unit_of("cost_unit", cost))


def unit_of(name: str, unit: Any) -> str | None:
    if unit is None:
        return None
    if isinstance(unit, str) and not unit:
        return ""
    if not isinstance(unit, str) or not unit.isprintable() or len(unit) > LONGEST_UNIT:
        raise BadParameter(f"{name} = {quoted(unit)}; it must be text of at most {LONGEST_UNIT} characters, like 's'")
    return check_text(name, unit, BadParameter)


def units_from(content: Any) -> Units:
    """The units that were stored; `ValueError` if it was not that."""
    units = Units(*content)
    if len(content) != len(units) or not all(type(unit) is str for unit in units):
        raise ValueError(f"units = {content!r}")
    return units


def declared_of(options: Any) -> Declared:
    """Kinds and their options from outside, checked."""
    if not isinstance(options, Mapping):
        example = '{"weather": [1, 5, 10]}'
        raise BadParameter(f"declare: {quoted(options)} is no mapping; give every kind its options, like {example}")
    return {check_text("kind", kind): option_texts(plain_options(those)) for kind, those in options.items()}


def declared_from(content: Any) -> Declared:
    """The declaration that was stored; `ValueError` if it was not that."""
    declared = {kind: tuple(options) for kind, options in content.items()}
    if not all(type(text) is str for options in declared.values() for text in options):
        raise ValueError(f"declared = {content!r}")
    return declared


def check_declared(declared: Declared, kind: str | None, options: Sequence[str]) -> None:
    """Refuse a kind or an option, as JSON, that was not declared; everything goes where nothing was.

    Without a kind, an option may be one of any.
    """
    if not declared:
        return
    if kind is not None and kind not in declared:
        raise undeclared(f"kind {kind!r}", kind, declared)
    known = declared[kind] if kind is not None else dict.fromkeys(text for all in declared.values() for text in all)
    for text in options:
        if text not in known:
            where = "" if kind is None else f" for kind {kind!r}"
            raise undeclared(f"option {text}{where}", text, known)


def undeclared(what: str, word: str, known: Collection[str]) -> Undeclared:
    """The error, with what was meant or what there is."""
    import difflib

    near = difflib.get_close_matches(word, known, n=1, cutoff=NEAR_ENOUGH)
    more = f" and {len(known) - MOST_LISTED:,} more" if len(known) > MOST_LISTED else ""
    hint = f"did you mean {near[0]}?" if near else f"declared are: {', '.join([*known][:MOST_LISTED])}{more}."
    return Undeclared(f"{what} was not declared; {hint} If it is new, add it: scheduler.declare({{kind: [options]}})")
