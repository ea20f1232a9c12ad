"""Which model should answer? A wrong answer is found in review, and review costs more than any model.

Three kinds of questions, three models. The price of a call is known, whether it is right is not; every answer is
reviewed, whatever model gave it, and that is the overhead. The scheduler sees only what its own choices brought.

Prints:

    0.2266 right answers per cent, review included; a cent is worth 0.2278 answers
    look-up: mostly small (99% of 1464)
    summary: mostly medium (98% of 1216)
    proof: mostly small (96% of 320)
"""

from __future__ import annotations

import random

from worthwhile import Scheduler

PRICE = {"small": 0.2, "medium": 1.0, "large": 6.0}  # cents per call
REVIEW = 3.0  # cents per answer
RIGHT = {  # how often each model is right; nobody tells the scheduler
    "look-up": {"small": 0.92, "medium": 0.94, "large": 0.95},
    "summary": {"small": 0.45, "medium": 0.85, "large": 0.90},
    "proof": {"small": 0.02, "medium": 0.15, "large": 0.75},
}


def main(tasks: int = 3000) -> None:
    luck = random.Random(1)
    with Scheduler(overhead=REVIEW, seed=1) as scheduler:
        for _ in range(tasks):
            kind = luck.choices(list(RIGHT), [0.5, 0.4, 0.1])[0]
            task = scheduler.decide(kind, options=list(PRICE))
            right = luck.random() < RIGHT[kind][str(task.option)]
            task.report(reward=float(right), cost=PRICE[str(task.option)])
        summary = scheduler.summary()
    print(f"{summary.ratio:.4f} right answers per cent, review included; a cent is worth {summary.price:.4f} answers")
    for kind in summary.kinds:
        best = max(kind.options, key=lambda option: option.pulls)
        print(f"{kind.kind}: mostly {best.option} ({best.share:.0%} of {kind.reports})")


if __name__ == "__main__":
    main()
