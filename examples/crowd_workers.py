"""Whom should a labelling task go to? Workers come and go, answer late, and some never do.

Workers differ in how often they are right and in what they charge. Only those who are at work are on offer. Answers
come back out of order; a worker who never answers costs nothing but a lease.

Prints:

    the most accurate at work: 0.0781 right ones per cent
    the cheapest at work: 0.0878
    learned on the way: 0.0908, from 2918 labels; 20 still out
    birds: cem 72%, bob 22%, dot 5%, ann 1%
    texts: bob 74%, cem 22%, dot 4%, ann 1%
"""

from __future__ import annotations

import random
from collections.abc import Callable

from worthwhile import Scheduler, Task

SHARE_RIGHT = {"ann": (0.95, 0.60), "bob": (0.80, 0.85), "cem": (0.55, 0.50), "dot": (0.90, 0.90)}  # birds, texts
CHARGE = {"ann": 9.0, "bob": 5.0, "cem": 2.0, "dot": 7.0}  # cents per label
PLATFORM = 4.0  # cents per label, whoever does it


def main(tasks: int = 3000) -> None:
    luck, waiting = random.Random(2), list[Task]()
    with Scheduler(overhead=PLATFORM, seed=2) as scheduler:
        for number in range(tasks):
            at_work = [name for name in CHARGE if luck.random() < 0.8] or ["cem"]
            kind = luck.choice(["birds", "texts"])
            waiting.append(scheduler.decide(kind, at_work, key=f"label {number}", lease=60))
            if len(waiting) > 20:  # somebody answers, not the first who was asked
                answer(waiting.pop(luck.randrange(len(waiting))), luck)
        summary = scheduler.summary()
    print(f"the most accurate at work: {always(most_accurate):.4f} right ones per cent")
    print(f"the cheapest at work: {always(cheapest):.4f}")
    print(f"learned on the way: {summary.ratio:.4f}, from {summary.reports} labels; {summary.running} still out")
    for kind in summary.kinds:
        shares = ", ".join(f"{option.option} {option.share:.0%}" for option in kind.options)
        print(f"{kind.kind}: {shares}")


def most_accurate(name: str, kind: int) -> float:
    return SHARE_RIGHT[name][kind]


def cheapest(name: str, kind: int) -> float:
    return -CHARGE[name]


def always(best: Callable[[str, int], float], labels: int = 100_000) -> float:
    """Right labels per cent, if everybody at work is known and the best of them is asked."""
    luck, right, cents = random.Random(5), 0.0, 0.0
    for number in range(labels):
        kind, at_work = number % 2, [name for name in CHARGE if luck.random() < 0.8] or ["cem"]
        name = max(at_work, key=lambda name: best(name, kind))
        right, cents = right + SHARE_RIGHT[name][kind], cents + PLATFORM + CHARGE[name]
    return right / cents


def answer(task: Task, luck: random.Random) -> None:
    """What comes back; one in fifty never does."""
    if luck.random() < 0.02:
        task.cancel()
        return
    name = str(task.option)
    right = luck.random() < SHARE_RIGHT[name][task.kind == "texts"]
    task.report(reward=float(right), cost=CHARGE[name])


if __name__ == "__main__":
    main()
