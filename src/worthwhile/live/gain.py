"""The headline: what the scheduler earns beside its baseline, with how sure that is; never a bare number."""

from __future__ import annotations

from dataclasses import dataclass

from worthwhile.goals.goal import Goal
from worthwhile.live.log_statistics import LogStatistics
from worthwhile.live.trials import TrialSettings, shown_text
from worthwhile.proof.confidence import FIRST, Estimate
from worthwhile.proof.trial import Gain

OF = {"ratio": "reward per cost", "reward": "reward per task", "cost": "of the cost per task saved"}
NO_TASK = "name an option that is on offer, with baseline=…, or with usual=… in each call"
SHADOW = "all tasks take the baseline, so nobody knows what others would bring; `worthwhile promote` proposes a share"


@dataclass(frozen=True)
class Range:
    """An estimate: the interval that holds at this moment, and the one that holds whenever somebody looks (95 %)."""

    value: float
    low: float
    high: float
    always_low: float
    always_high: float


@dataclass(frozen=True)
class GainSummary:
    """The gain over the baseline, from tasks that a coin held out; 0.1 is 10 % more reward per cost.

    With a floor to be kept at the least cost it is the share of the cost that is saved, with a budget the reward won.
    The difference is R − θ₀C of a task with the scheduler, less that with the baseline.
    """

    says: str  # all of it in a line
    baseline: str  # in words
    measure: str  # ratio, reward or cost: what the gain is of
    holdout: float  # share of the tasks, now
    gain: Range | None  # None while too little is known
    difference: Range | None
    price: float | None  # θ₀
    ratio: float | None  # of the scheduler, on the tasks that could be held out
    baseline_ratio: float | None
    reward: float  # of a task with the scheduler, on average
    cost: float
    baseline_reward: float
    baseline_cost: float
    held_out: int  # that took the baseline, where the scheduler wanted another option
    decided: int  # that took what the scheduler wanted, where that was not the baseline
    agreed: int  # in which the scheduler wanted the baseline itself
    cost_quotient: float | None  # what a task costs with the scheduler, over what it costs with the baseline
    guarded: int  # that took the baseline for caution
    not_held_out: (
        int  # that could not be, or be guarded, because the baseline was not on offer, retired, benched or not known
    )


def gain_summary(settings: TrialSettings, statistics: LogStatistics, goal: Goal) -> GainSummary | None:
    """What the trial shows; None if there was none."""
    if not settings.ever_held_out and not settings.baseline:
        return None
    shown, baseline = statistics.trial.result(goal.goal), baseline_words(settings)
    gain, difference = range_of(shown.gain), range_of(shown.difference)
    if gain is None:
        says = why_not_known(settings, statistics, shown, baseline)
    else:
        says = f"{compared(gain, goal.goal)} {baseline}, from {shown.held_out:,} held-out tasks"
    return GainSummary(
        says, baseline, goal.goal, settings.holdout, gain, difference, shown.price, shown.ratio, shown.baseline_ratio,
        *shown.means, shown.held_out, shown.decided, shown.agreed, shown.cost_quotient, statistics.guarded,
        statistics.no_baseline,
    )  # fmt: skip


def range_of(estimate: Estimate | None) -> Range | None:
    return None if estimate is None else Range(estimate.value, *estimate.now, *estimate.always)


def baseline_words(settings: TrialSettings) -> str:
    """What is compared with."""
    everywhere = [shown_text(option) for kind, option in settings.baseline if kind is None]
    if everywhere:
        return f"always {everywhere[0]}"
    return "the usual option of every kind" if settings.baseline else "the usual option of every task"


def why_not_known(settings: TrialSettings, statistics: LogStatistics, shown: Gain, baseline: str) -> str:
    """Why there is no gain to be shown."""
    if statistics.no_baseline and not statistics.with_baseline:
        return f"not known against {baseline}: no task could take that; {NO_TASK}"
    if settings.holdout >= 1.0:
        return f"not known against {baseline}: {SHADOW}"
    if not settings.ever_held_out:
        return f"not known against {baseline}: no task is held out; set holdout=0.05, for instance"
    if min(shown.held_out, shown.decided) >= FIRST:
        return f"no quotient against {baseline}: one of both earns nothing, or less"
    which = f"{shown.held_out:,} held out and {shown.decided:,} not, where both differ; {FIRST} of each are needed"
    return f"too few tasks to tell against {baseline}: {which}"


def compared(gain: Range, measure: str) -> str:
    """How far the scheduler is above the baseline."""
    if measure == "cost" and gain.value < 0.0:
        return f"{signed(-gain.value)} ({span(-gain.high, -gain.low)}) cost per task against"
    return f"{signed(gain.value)} ({span(gain.low, gain.high)}) {OF[measure]} against"


def signed(share: float) -> str:
    """+12 %, or with more digits what is small."""
    return f"{share * 100.0:+.{digits(share)}f} %".replace("-", "−")


def span(low: float, high: float) -> str:
    """5 to 19 %."""
    places = digits(high - low)
    return f"{low * 100.0:.{places}f} to {high * 100.0:.{places}f} %".replace("-", "−")


def digits(share: float) -> int:
    return 0 if abs(share) >= 0.05 else 1
