"""The limits that the default must keep in the arena, each judged where it was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from measuring import TIE_ERRORS, Measured

LOST = {  # (row, tasks): % of the optimum that may be lost
    ("fair coin", 10_000): 0.7,
    ("fair coin, noisy costs", 10_000): 1.5,
    ("jackpot", 10_000): 8.0,
    ("cost coin", 10_000): 5.0,
    ("slow first call", 3_000): 5.0,
}
STUCK_AT, STUCK_RUNS, STUCK_SHARE = 100_000, 1_000, 1.0  # tasks, runs from which on it counts, %
REFERENCE_MEAN, REFERENCE_ROW = 1.05, 1.2  # × what the default of the earlier commit loses
REFERENCE_AT = (1_000, 10_000, 100_000)
RIVALS_AT, RIVALS_SHARE, RIVALS_ROW = 100_000, 0.85, 1.5  # tasks; best or tied on so many rows; × the best rival
LEAST = 0.01  # %: smaller losses count as this in a geometric mean, and where losses are divided


class Verdict(NamedTuple):
    """A limit, what was measured, and whether it is kept."""

    limit: str
    measured: str
    kept: bool


def judge(found: Sequence[Measured], ours: str, reference: str) -> Iterator[Verdict]:
    """Every limit about the rows and horizons that were measured; `found` has one setting of every rival."""
    for one in found:
        if (one.row, one.tasks) in LOST:
            most = LOST[one.row, one.tasks]
            lost = one.mean(ours)
            yield Verdict(f"{one.row}, T = {one.tasks:,}: at most {most:g} % lost", f"{lost:.3g} %", lost <= most)
    stuck = [one for one in found if one.tasks == STUCK_AT and one.runs >= STUCK_RUNS]
    if stuck:
        yield judge_stuck(stuck, ours)
    for tasks in REFERENCE_AT:
        rows = [one for one in found if one.tasks == tasks and not one.new and reference in one.policies]
        if rows:
            yield from judge_beside_reference(rows, ours, reference)
    rows = [one for one in found if one.tasks == RIVALS_AT and rivals_of(one, ours, reference)]
    if rows:
        yield from judge_beside_rivals(rows, ours, reference)


def judge_stuck(rows: Sequence[Measured], ours: str) -> Verdict:
    bad = [f"{one.row} {one.stuck_runs(ours):.2g} %" for one in rows if one.stuck_runs(ours) > STUCK_SHARE]
    limit = f"T = {STUCK_AT:,}: at most {STUCK_SHARE:g} % of the runs stuck on each of {len(rows)} rows"
    return Verdict(limit, ", ".join(bad) or "all", not bad)


def judge_beside_reference(rows: Sequence[Measured], ours: str, reference: str) -> Iterator[Verdict]:
    """One horizon. A row counts as worse only if it is so by more than the errors of measurement."""
    times = geometric([one.mean(ours) for one in rows]) / geometric([one.mean(reference) for one in rows])
    where = f"T = {rows[0].tasks:,}, {len(rows)} rows of the reference"
    yield Verdict(
        f"{where}: geometric mean at most {REFERENCE_MEAN:g} × its", f"{times:.3f} ×", times <= REFERENCE_MEAN
    )
    bad = [one for one in rows if more_than(one, REFERENCE_ROW, ours, reference) and worse(one, ours, reference)]
    shown = ", ".join(f"{one.row} {ratio(one, ours, reference):.2f} ×" for one in bad)
    yield Verdict(f"{where}: none above {REFERENCE_ROW:g} ×", shown or "none", not bad)


def judge_beside_rivals(rows: Sequence[Measured], ours: str, reference: str) -> Iterator[Verdict]:
    """The horizon that counts, beside the best rival of every row."""
    best = {one.row: one.best(rivals_of(one, ours, reference)) for one in rows}
    good = [one for one in rows if one.mean(ours) <= one.mean(best[one.row]) or one.ties(ours, best[one.row])]
    share, where = len(good) / len(rows), f"T = {rows[0].tasks:,}"
    limit = f"{where}: best or tied on at least {RIVALS_SHARE:.0%} of the rows"
    yield Verdict(limit, f"{len(good)} of {len(rows)}", share >= RIVALS_SHARE)
    bad = [one for one in rows if one not in good and more_than(one, RIVALS_ROW, ours, best[one.row])]
    shown = ", ".join(f"{one.row} {ratio(one, ours, best[one.row]):.2f} × {best[one.row]}" for one in bad)
    yield Verdict(f"{where}: nowhere above {RIVALS_ROW:g} × the best rival", shown or "nowhere", not bad)


def rivals_of(one: Measured, ours: str, reference: str) -> list[str]:
    """All but ours and the reference, which is the same policy."""
    return [name for name in one.policies if name not in (ours, reference)]


def worse(one: Measured, ours: str, reference: str) -> bool:
    by, error = one.behind(ours, reference)
    return by > TIE_ERRORS * error


def more_than(one: Measured, times: float, ours: str, other: str) -> bool:
    return ratio(one, ours, other) > times


def ratio(one: Measured, ours: str, other: str) -> float:
    return max(one.mean(ours), LEAST) / max(one.mean(other), LEAST)


def geometric(losses: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(loss, LEAST)) for loss in losses) / len(losses))


def print_verdicts(verdicts: Sequence[Verdict]) -> bool:
    """One line each; whether all are kept."""
    for verdict in verdicts:
        print(f"  {'kept  ' if verdict.kept else 'MISSED'} {verdict.limit}: {verdict.measured}")
    return all(verdict.kept for verdict in verdicts)
