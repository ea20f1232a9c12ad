"""Which model should answer? At least this good, as cheaply as possible: a floor for every kind of question.

Three kinds of questions, three models. The price of a call is known, whether it is right is not. By the ratio, the
smallest model always wins: it is so cheap. With a floor for each kind, the scheduler finds the cheapest mix that is
right often enough, from nothing but what its own choices brought.

Prints:

    always the cheapest: 64% right, 0.20 cents a question
    always the best: 91% right, 6.00 cents a question
    with floors: 83% right, 0.87 cents a question
    look-up: 92.3% right, 90% wanted; small 100%
    summary: 80.1% right, 80% wanted; medium 86%, small 14%
    proof: 50.2% right, 50% wanted; large 59%, medium 32%, small 9%
"""

from __future__ import annotations

import random

from worthwhile import Scheduler

PRICE = {"small": 0.2, "medium": 1.0, "large": 6.0}  # cents per call
RIGHT = {  # how often each model is right; nobody tells the scheduler
    "look-up": {"small": 0.92, "medium": 0.94, "large": 0.95},
    "summary": {"small": 0.45, "medium": 0.85, "large": 0.90},
    "proof": {"small": 0.02, "medium": 0.15, "large": 0.75},
}
SHARE = {"look-up": 0.5, "summary": 0.4, "proof": 0.1}  # of the questions
FLOOR = {"look-up": 0.9, "summary": 0.8, "proof": 0.5}  # right answers that are good enough


def always(model: str) -> tuple[float, float]:
    """The share of right answers, and the cost of a question, if every question goes to one model."""
    return sum(SHARE[kind] * RIGHT[kind][model] for kind in RIGHT), PRICE[model]


def main(tasks: int = 6000) -> None:
    luck = random.Random(1)
    with Scheduler(floor=FLOOR, seed=1) as scheduler:
        for _ in range(tasks):
            kind = luck.choices(list(SHARE), list(SHARE.values()))[0]
            task = scheduler.decide(kind, options=list(PRICE))
            right = luck.random() < RIGHT[kind][str(task.option)]
            task.report(reward=float(right), cost=PRICE[str(task.option)])
        summary = scheduler.summary()
    for name, (right_answers, cost) in {"cheapest": always("small"), "best": always("large")}.items():
        print(f"always the {name}: {right_answers:.0%} right, {cost:.2f} cents a question")
    right_answers, cost = summary.reward / summary.reports, summary.cost / summary.reports
    print(f"with floors: {right_answers:.0%} right, {cost:.2f} cents a question")
    for kind in summary.kinds:
        used = ", ".join(f"{option.option} {option.share:.0%}" for option in kind.options if option.share >= 0.01)
        right_answers = sum(option.pulls * (option.mean_reward or 0.0) for option in kind.options) / kind.reports
        print(f"{kind.kind}: {right_answers:.1%} right, {FLOOR[kind.kind]:.0%} wanted; {used}")


if __name__ == "__main__":
    main()
