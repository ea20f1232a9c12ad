"""How many passes over the data is a model worth? Trainings stop when the next passes are not worth their cost.

Classifiers of digits, some with 60 images to learn from, some with 600; the scheduler is not told which, but after a
pass or two the score shows it. To adapt: `model` and `score` are yours, and without `cost=` a pass costs the time that
it takes. Here a pass costs 1 and a training 2 on top, so that the figures are the same everywhere. Prints:

    80 trainings, 1.8 passes each, reward per cost 0.178; with all 12 passes at most 0.066
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from worthwhile import Scheduler

PASSES = list(range(1, 13))
SET_UP = 2.0  # what a training costs before its first pass
IMAGES, DIGITS = load_digits(return_X_y=True)


def main(trainings: int = 80) -> str:
    with Scheduler(overhead=SET_UP, seed=1) as scheduler:
        for number in range(trainings):
            rng = np.random.default_rng(number)
            order, size = rng.permutation(len(DIGITS)), rng.choice([60, 600])
            train, test = order[:size], order[800:]
            model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=number)
            with scheduler.task("digits", PASSES) as task:
                for length in task.steps(PASSES):
                    model.partial_fit(IMAGES[train], DIGITS[train], classes=range(10))
                    task.progress(model.score(IMAGES[test], DIGITS[test]), cost=length)
        lines, ratio = scheduler.latest(trainings), scheduler.summary().ratio
    passes = np.mean([line.cost for line in lines])
    best = max(line.reward for line in lines if line.reward is not None)
    return (
        f"{trainings} trainings, {passes:.1f} passes each, reward per cost {ratio:.3f}; "
        f"with all 12 passes at most {best / (SET_UP + PASSES[-1]):.3f}"
    )


if __name__ == "__main__":
    print(main())
