"""From a shadow of what is done today to a scheduler that decides: step by step, each with what it should bring."""

from __future__ import annotations

from dataclasses import dataclass

from worthwhile.errors import BadParameter
from worthwhile.live.gain import OF, GainSummary, signed, span
from worthwhile.live.trials import share_of

STEPS = (0.05, 0.5, 0.95)  # of the tasks, decided by the scheduler; the rest is held out, so that it stays known


@dataclass(frozen=True)
class Promotion:
    """What share of the tasks the scheduler decides, what share it should, and what that is expected to bring."""

    share: float  # of the tasks, from now on
    proposed: float  # the next step
    gain: float | None  # of all tasks together at the proposed share, or at the one just set; None if nobody knows
    low: float | None
    high: float | None
    says: str

    def __str__(self) -> str:
        return self.says


def share_to_set(share: float | None) -> float | None:
    """The share that the scheduler is to decide, as the share to be held out."""
    if share is None:
        return None
    holdout = 1.0 - share_of("share", share)
    if holdout == 0.0:
        raise BadParameter("share = 1 holds nothing out, and nobody could tell the gain any more; take 0.95")
    return round(holdout, 12)


def promotion(gain: GainSummary | None, was_set: bool) -> Promotion:
    """What to do next, from what the trial shows."""
    if gain is None:
        raise BadParameter("no baseline to be promoted from; set one with change(baseline=…, holdout=1)")
    share = round(1.0 - gain.holdout, 12)
    proposed, why = next_step(gain, share)
    expected = share if was_set else proposed
    brings = mixed(gain, expected)
    decides = f"the scheduler decides {share:.0%} of the tasks" + (" from now on" if was_set else "")
    if brings is None:
        told = f"what it brings beyond {gain.baseline} cannot be told"
    else:
        told = (
            f"with {expected:.0%}, all tasks together are expected to bring {signed(brings[0])} ({span(*brings[1:])})"
        )
        told += f" {OF[gain.measure]} beyond {gain.baseline}"
    stays = f"stay at {share:.0%}" if proposed == share else f"next: --share {proposed:g}"
    value, low, high = brings or (None, None, None)
    return Promotion(share, proposed, value, low, high, f"{decides}; {told}; {stays}, {why}")


def next_step(gain: GainSummary, share: float) -> tuple[float, str]:
    """The share to take next, and why."""
    if gain.gain is None and share >= 1.0:
        return STEPS[-1], "since with nothing held out nobody will ever know more"
    if gain.gain is None:
        return (STEPS[0], "to see what other options bring") if share < STEPS[0] else (share, "until more is known")
    if gain.gain.always_high < 0.0 and gain.measure == "cost":
        return share, "since the baseline is cheaper: does it keep the floor?"
    if gain.gain.always_high < 0.0:
        return min(share, STEPS[0]), "since the baseline is better"
    if gain.gain.always_low <= 0.0:
        return share, "until it is clear which is better"
    return next((step for step in STEPS if step > share), share), "since the gain is clear"


def mixed(gain: GainSummary, share: float) -> tuple[float, float, float] | None:
    """The gain of all tasks together if the scheduler decides a share s of them, with the range that always holds.

    s·c·g/((1 − s) + s·c), where c is the quotient of both sides' costs; s·g for the cost saved or the reward won.
    """
    if gain.gain is None or gain.cost_quotient is None:
        return None
    part = share
    if gain.measure == "ratio":
        part *= gain.cost_quotient / ((1.0 - share) + share * gain.cost_quotient)
    return part * gain.gain.value, part * gain.gain.always_low, part * gain.gain.always_high
