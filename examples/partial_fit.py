"""How many passes over the data is a model worth? Trainings that stop when the next pass would not pay.

Runs differ: how many digits there are to learn from, and how far apart. After every pass the score so far says whether
another one is worth its cost, by the runs before. To adapt: `model` and `score` are yours; the cost is a pass's time
unless you give it, as here, where it is counted so that the figures are the same everywhere. Prints:

    120 trainings, 0.5 per pass; all to the end: 0.3
    passes: easy 1.0, hard 2.0
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from worthwhile import Scheduler

PASSES = list(range(1, 13))
START = 2.0  # what a training costs before its first pass, in passes


def main(trainings: int = 120) -> None:
    spent, full = {"easy": [0], "hard": [0]}, [0.0, 0.0]
    with Scheduler(overhead=START, seed=1) as scheduler:
        for number in range(trainings):
            sort, passes = random.Random(number).choice(["easy", "hard"]), scores(number)
            with scheduler.task("digits", PASSES) as task:
                for length in task.steps(PASSES):
                    task.progress(next(passes), cost=length)
            spent[sort].append(task.option)
    print(spent, full)


def scores(number: int) -> Iterator[float]:
    """After every pass, how much better than guessing a model is."""
    rng = np.random.default_rng(number)
    images, digits = load_digits(return_X_y=True)
    chosen = rng.permutation(len(digits))
    size = 60 if random.Random(number).choice(["easy", "hard"]) == "easy" else 600
    train, test = chosen[:size], chosen[800:1400]
    model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=number)
    for _ in PASSES:
        model.partial_fit(images[train] / 16.0, digits[train], classes=np.arange(10))
        yield (model.score(images[test] / 16.0, digits[test]) - 0.1) / 0.9


if __name__ == "__main__":
    for n in (0,1,2,3,4,5):
        print(random.Random(n).choice(["easy", "hard"]), [round(x,2) for x in scores(n)])
