"""Table 1: per-kind greedy and its reverse on the toy example, for every share of arrivals; how bad greedy can be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from worthwhile.experiments.base import Claim, Columns, Outcome, Scale, verdict
from worthwhile.experiments.figures import curve, panels, reference
from worthwhile.optimum import ratio_of, solve
from worthwhile.problem import Problem

SHARE, OTHER_SHARE = 0.8, 0.2  # of kind I: in the table, and where the paper says that the reverse fails
PRINTED = {"greedy": 2.5, "reverse": 2.6}  # in the paper
DEARNESS = 2.0  # the cost of option III in the paper
SHARES = np.linspace(0.0, 1.0, 101).tolist()
DEAR, TWISTS = np.geomspace(DEARNESS, 20_000.0, 41).tolist(), (SHARE, 0.01)
ALGORITHMS = {"greedy": np.array([0, 2]), "reverse": np.array([0, 1])}  # options I and III, options I and II


def toy(share: float, dear: float = DEARNESS) -> Problem:
    """The paper's toy example, and a family that begins with it: III ever dearer, II worth ever less, III better."""
    return Problem.of(
        {"I": (share, {"I": (3.0, 1.0)}), "II": (1.0 - share, {"II": (2.0 / dear, 1.0), "III": (3.0, dear)})},
        name=f"toy-{share:g}-{dear:g}",
    )


def run(scale: Scale) -> Outcome:
    """Everything here is an expectation: nothing is drawn, whatever the scale."""
    table, shares = values([(SHARE, DEARNESS)]), values([(share, DEARNESS) for share in SHARES])
    family = values([(share, dear) for share in TWISTS for dear in DEAR])
    return Outcome(
        words=words(table, shares),
        data={"table-1": table, "table-1-shares": shares, "table-1-family": family},
        figures={"table-1": draw(shares, family)},
        claims=[printed(table), other_distribution(), by_arrivals_alone(shares), in_the_family(family)],
    )


def values(cases: list[tuple[float, float]]) -> Columns:
    """Reward per cost of both algorithms and of the optimum: one row per share of kind I and cost of option III."""
    problems = [toy(*case) for case in cases]
    ratios = {name: [ratio_of(problem, choice) for problem in problems] for name, choice in ALGORITHMS.items()}
    best = [solve(problem).ratio for problem in problems]
    part = [greedy / optimum for greedy, optimum in zip(ratios["greedy"], best, strict=True)]
    share, dear = zip(*cases, strict=True)
    return {"share": share, "dear": dear, **ratios, "optimum": best, "greedy_part": part}


def crossing() -> Fraction:
    """The share of kind I at which both algorithms are worth the same, exactly.

    There the ratio is the price of going from II to III, q = Δr/Δc, and r − q·c of the two kinds average to 0.
    """
    problem = toy(SHARE)
    reward, cost = (np.vectorize(Fraction)(np.nan_to_num(means)) for means in (problem.reward, problem.cost))
    price = (reward[1, 2] - reward[1, 1]) / (cost[1, 2] - cost[1, 1])
    first, second = reward[0, 0] - price * cost[0, 0], reward[1, 1] - price * cost[1, 1]
    return Fraction(second / (second - first))


def crossing_by_search(low: float = 0.0, high: float = 0.9) -> float:
    """The same by bisection on the values."""
    while high - low > 1e-14:
        middle = 0.5 * (low + high)
        row = values([(middle, DEARNESS)])
        low, high = (middle, high) if row["greedy"][0] > row["reverse"][0] else (low, middle)
    return 0.5 * (low + high)


def draw(shares: Columns, family: Columns) -> Any:
    """The toy example for every share of arrivals; greedy's part of the optimum in the family."""
    titles = ("the toy example", "the family: option III ever dearer")
    figure, axes = panels(titles, "share of kind I in the arrivals", "reward / cost")
    for name, look in (("greedy", "kind-greedy"), ("reverse", "the reverse"), ("optimum", "optimum")):
        curve(axes[0], shares["share"], shares[name], look, label="optimum θ*" if name == "optimum" else name)
    cross = float(crossing())
    reference(axes[0], [cross, cross], [1.0, 3.0], f"equal at {cross:g}")
    axes[0].legend(frameon=False, loc="lower right")
    for share, side in zip(TWISTS, ({"ha": "right", "va": "top"}, {"ha": "left", "va": "bottom"}), strict=True):
        rows = np.array(family["share"]) == share
        x, y = np.array(family["dear"])[rows], 100.0 * np.array(family["greedy_part"])[rows]
        curve(axes[1], x, y, "kind-greedy", label="greedy")
        axes[1].annotate(f" share of kind I: {share:g} ", (x[len(x) // 2], y[len(x) // 2]), **side)
    axes[1].set(xscale="log", yscale="log", xlabel="cost of option III (all others cost 1)")
    axes[1].set_ylabel("greedy, % of the optimum θ*")
    return figure


def printed(table: Columns) -> Claim:
    """The two numbers of the table."""
    ratios = {name: table[name][0] for name in PRINTED}
    same = all(abs(ratios[name] - ratio) < 1e-12 for name, ratio in PRINTED.items())
    words = " and ".join(f"{name} earns {ratio:.6g}" for name, ratio in ratios.items())
    claim = f"Table 1: {', '.join(f'{name} {ratio:g}' for name, ratio in PRINTED.items())}"
    return Claim(claim, verdict(same), words)


def other_distribution() -> Claim:
    """Neither algorithm is right for all arrivals."""
    row = values([(OTHER_SHARE, DEARNESS)])
    greedy, reverse = row["greedy"][0], row["reverse"][0]
    return Claim(
        f"with arrivals {{{OTHER_SHARE:g}, {1 - OTHER_SHARE:g}}} the reverse algorithm fails",
        verdict(reverse < greedy),
        f"greedy {greedy:.4g}, reverse {reverse:.4g}; the reverse is worse at every share below {crossing()}",
    )


def by_arrivals_alone(shares: Columns) -> Claim:
    """On the toy example itself."""
    parts = shares["greedy_part"]
    worst = int(np.argmin(parts))
    return Claim(
        "greedy is arbitrarily sub-optimal: the toy example, only its arrivals twisted",
        verdict(parts[worst] <= 0.5),
        f"greedy never earns less than {100 * parts[worst]:.3g} % of the optimum (at a share of "
        f"{shares['share'][worst]:g}); the toy's rewards and costs leave no more to lose",
    )


def in_the_family(family: Columns) -> Claim:
    """With other rewards and costs it is, and a slight twist of the arrivals is enough."""
    twist, dear = TWISTS[-1], DEAR[-1]
    before, after = (100.0 * values([(share, dear)])["greedy_part"][0] for share in (0.0, twist))
    table = np.array(family["greedy_part"])[np.array(family["share"]) == SHARE]
    falling = bool((np.diff(table) < 0.0).all())
    return Claim(
        "greedy is arbitrarily sub-optimal: a family of problems that begins with the toy example",
        verdict(falling and after < 1.0),
        f"with option III at a cost of {dear:,.0f}, greedy earns {100 * table[-1]:.2g} % of the optimum at a share of "
        f"{SHARE:g}, {before:.3g} % when kind I never arrives, and {after:.2g} % when {100 * twist:g} % of the tasks "
        "are of kind I; it falls to 0 as 1/cost",
    )


def words(table: Columns, shares: Columns) -> str:
    """The table in a sentence, and what happens at other shares."""
    cross, search = crossing(), crossing_by_search()
    worst = 100.0 * min(shares["greedy_part"])
    return (
        "Nothing here is drawn at random: every number is an expectation, without runs and without error. "
        f"At a share of {SHARE:g} greedy earns {table['greedy'][0]:.4g} per unit of cost and its reverse "
        f"{table['reverse'][0]:.4g}. They are equal at a share of exactly {cross} (by search: {search:.9f}): below it "
        f"greedy is the optimum, above it the reverse is. Over all shares greedy earns at least {worst:.3g} % of the "
        "optimum. The family on the right begins with the toy example at d = 2 (kind I: 3 for 1; option II: 2/d "
        "for 1; option III: 3 for d): greedy always takes III, the better ratio, and spends nearly everything on it."
    )
