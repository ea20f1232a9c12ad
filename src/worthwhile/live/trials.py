"""Holding tasks out: which ones take the baseline, or any option, instead of what the policy would take.

A coin decides, a function of the scheduler's seed and the task's number: it knows nothing of the task, and any process
can repeat it. Its stream is its own, so that a randomised policy draws what it would have drawn without.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter
from worthwhile.formatting import shown
from worthwhile.live.stores.base import AGREED, CHOSEN, EXPLORED, GUARDED, HELD_OUT, NO_BASELINE
from worthwhile.live.validation import NONE, check_text, option_text, quoted
from worthwhile.rng import Rng, bits, uniform

TRIAL_DRAW = 1 << 20  # beyond the draws that give further attempts their keys
HOLD_OUT, EXPLORE, WHICH = range(3)  # draws of a task
MOST_SHARES = 1000  # changes of the share that are remembered

Baseline = tuple[tuple[str | None, str], ...]  # (kind, or None for all; option as JSON)


class Shares(NamedTuple):
    """What was held out and explored from a task on."""

    first: int
    holdout: float
    explore: float


class TrialSettings(NamedTuple):
    """What is held out, and how."""

    baseline: Baseline = ()
    holdout: float = 0.0  # share of the tasks that take the baseline
    explore: float = 0.0  # share of the others that take any option
    shares: tuple[Shares, ...] = ()  # as they were changed
    guard: float | None = None  # how far everything together may be below the baseline, as a share of its ratio
    guard_error: float = 0.05  # with what probability it may be further
    since: int = 1  # the first task with this baseline: what came before is compared with something else
    before_pause: float | None = None  # the share held out before every task was; None for a shadow from the start

    @property
    def active(self) -> bool:
        """Whether anything but the policy decides."""
        return self.holdout > 0.0 or self.explore > 0.0 or self.guard is not None

    @property
    def ever_held_out(self) -> bool:
        return any(shares.holdout > 0.0 for shares in self.shares)

    @property
    def paused(self) -> bool:
        """Whether every task takes the baseline."""
        return self.holdout >= 1.0

    def shares_at(self, task: int) -> Shares:
        """Those with which a task was decided."""
        earlier = [shares for shares in self.shares if shares.first <= task]
        return earlier[-1] if earlier else Shares(1, 0.0, 0.0)

    def usual(self, kind: str) -> str | None:
        """The baseline of a kind; None if there is none."""
        named = dict(self.baseline)
        return named.get(kind, named.get(None))

    @property
    def mark(self) -> int:
        """Tells these settings from others."""
        return zlib.crc32(self.in_words().encode())

    def in_words(self) -> str:
        pairs = [shown_text(text) if kind is None else f"{kind}: {shown_text(text)}" for kind, text in self.baseline]
        guard = "" if self.guard is None else f", guard {self.guard:g} with guard_error {self.guard_error:g}"
        return f"baseline {', '.join(pairs) or 'none'}, holdout {self.holdout:g}, explore {self.explore:g}{guard}"


NO_TRIAL = TrialSettings()


class TrialChange(NamedTuple):
    """Settings to go on with; None leaves one as it is."""

    baseline: Baseline | None = None
    holdout: float | None = None
    explore: float | None = None
    guard: float | str | None = None  # NONE takes it away
    guard_error: float | None = None

    def applied(self, settings: TrialSettings, tasks: int) -> TrialSettings:
        """The settings with it, after so many tasks."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        new = settings._replace(**given | ({"guard": None} if self.guard == NONE else {}))
        if (new.holdout, new.explore) != (settings.holdout, settings.explore):
            earlier = [shares for shares in settings.shares if shares.first <= tasks]
            if len(earlier) >= MOST_SHARES:
                raise BadParameter(f"holdout and explore were changed {MOST_SHARES} times; use another scheduler")
            new = new._replace(shares=(*earlier, Shares(tasks + 1, new.holdout, new.explore)))
        if new.paused != settings.paused:
            new = new._replace(before_pause=settings.holdout if new.paused and tasks else None)
        if new.baseline != settings.baseline:
            new = new._replace(since=tasks + 1)
        check(new)
        return new

    def contradicts(self, settings: TrialSettings) -> bool:
        """Whether it says something else than a scheduler has."""
        has = settings._asdict()
        return any(wanted is not None and wanted != has[name] for name, wanted in self._asdict().items())


class Assigned(NamedTuple):
    """The option that a task takes, how it came about, and how likely that was."""

    option: int
    mode: int
    own: int | None  # the policy's choice, if the option is another one
    probability: float


def trial_change(
    baseline: Any = None, holdout: Any = None, explore: Any = None, guard: Any = None, guard_error: Any = None
) -> TrialChange:
    """Settings from outside, checked."""
    return TrialChange(
        None if baseline is None else baseline_of(baseline),
        None if holdout is None else share_of("holdout", holdout),
        None if explore is None else share_of("explore", explore),
        guard if guard is None or guard == NONE else inner_share("guard", guard),
        None if guard_error is None else inner_share("guard_error", guard_error),
    )


def inner_share(name: str, value: Any) -> float:
    """A number between 0 and 1, neither of them."""
    share = share_of(name, value)
    if not 0.0 < share < 1.0:
        raise BadParameter(f"{name} = {quoted(value)}; it must be above 0 and below 1, for instance 0.05")
    return share


def baseline_of(baseline: Any) -> Baseline:
    """One option for all kinds, or an option for each; none of them if it is empty."""
    if not isinstance(baseline, Mapping):
        return ((None, option_text(baseline)),)
    return tuple((check_text("kind", kind), option_text(option)) for kind, option in baseline.items())


def share_of(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value <= 1.0:
        raise BadParameter(f"{name} = {quoted(value)}; it is a share of the tasks, from 0 to 1")
    return float(value) + 0.0


def check(settings: TrialSettings) -> None:
    """Refuse what cannot be done together."""
    if settings.guard is not None and not settings.baseline:
        raise BadParameter("guard: nothing to be guarded against; name a baseline, too")
    if settings.explore >= 1.0:
        raise BadParameter("explore = 1 leaves nothing to the policy; use policy='random-option', or a smaller share")


def trial_from(content: Any) -> TrialSettings:
    """The settings that were stored; `ValueError` if it was not that."""
    if content is None:
        return TrialSettings()
    baseline = tuple((kind, option) for kind, option in content["baseline"])
    shares = tuple(Shares(*each) for each in content["shares"])
    guard = content["guard"], content["guard_error"]
    held = content["holdout"], content["explore"]
    settings = TrialSettings(baseline, *held, shares, *guard, content["since"], content.get("before_pause"))
    names = all(type(kind) in (str, type(None)) and type(option) is str for kind, option in baseline)
    numbers = all(type(first) is int and is_share(held) and is_share(other) for first, held, other in shares)
    optional = [share for share in (settings.guard, settings.before_pause) if share is not None]
    given = [settings.holdout, settings.explore, settings.guard_error, *optional]
    numbers = numbers and all(map(is_share, given)) and type(settings.since) is int
    if not (names and numbers):
        raise ValueError(f"trial = {content!r}")
    return settings


def is_share(value: Any) -> bool:
    return type(value) is float and 0.0 <= value <= 1.0


def shown_text(option: str) -> str:
    """An option from its JSON, for people."""
    return shown(json.loads(option))


def trial_key_of(seed_key: int) -> int:
    """The key of a scheduler's coins."""
    return bits(Rng(seed_key, 0), TRIAL_DRAW)[0]


def assign(
    settings: TrialSettings,
    rng: Rng,
    options: Sequence[int],
    own: int,
    baseline: int | None,
    drawn: Callable[[int], float] | None = None,
    allowed: Callable[[], bool] | None = None,
) -> Assigned:
    """What a task takes if the policy would take `own`; the baseline is None if the task cannot take it.

    `drawn` says how likely a randomised policy takes an option; without it, what it takes is certain. `allowed` says
    whether the guard lets it take another than the baseline.
    """
    holdout, explore = settings.holdout if baseline is not None else 0.0, settings.explore
    explored = explore > 0.0 and uniform(rng, EXPLORE) < explore
    wanted = options[int(uniform(rng, WHICH) * len(options))] if explored else own
    if baseline is not None and allowed is not None and not allowed():  # asked always: the probability depends on it
        return Assigned(baseline, GUARDED if own != baseline else AGREED, other(own, baseline), 1.0)
    held_out = holdout > 0.0 and uniform(rng, HOLD_OUT) < holdout
    option = baseline if held_out and baseline is not None else wanted
    by_policy = float(option == own) if drawn is None else drawn(option)
    by_scheduler = (1.0 - explore) * by_policy + explore / len(options)
    probability = (1.0 - holdout) * by_scheduler + holdout * float(option == baseline)
    return Assigned(option, mode_of(settings, baseline, wanted, held_out, explored), other(own, option), probability)


def mode_of(settings: TrialSettings, baseline: int | None, wanted: int, held_out: bool, explored: bool) -> int:
    if baseline is None and (settings.holdout > 0.0 or settings.guard is not None):
        return NO_BASELINE
    if wanted == baseline:
        return AGREED
    return HELD_OUT if held_out else EXPLORED if explored else CHOSEN


def other(own: int, option: int) -> int | None:
    return own if own != option else None


def share_at(settings: TrialSettings, task: int) -> float:
    """The share held out when a task was decided; 0 if that was with another baseline."""
    return settings.shares_at(task).holdout if task >= settings.since else 0.0
