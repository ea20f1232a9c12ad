"""Five classification tasks on data that comes with scikit-learn: small networks, really trained, really timed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import MissingExtra
from worthwhile.execution.arrivals import Arrival
from worthwhile.execution.metering import Measure, Outcome

try:
    from sklearn import datasets
    from sklearn.ensemble import IsolationForest
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits
except ImportError:
    raise MissingExtra("training on scikit-learn's data", "train") from None

EPOCHS = (1, 2, 4, 8, 16)
TREES = 20  # that look for outliers before every training


class Training(NamedTuple):
    """A data set, how often it arrives, and the network that learns it."""

    data: str
    arrival: float
    rate: float
    batch: int
    hidden: int = 16
    solver: str = "adam"


KINDS = {
    "cancer": Training("breast_cancer", 0.2, rate=0.003, batch=16),
    "wine": Training("wine", 0.1, rate=0.003, batch=4),
    "iris": Training("iris", 0.3, rate=0.003, batch=8),
    "digits": Training("digits", 0.1, rate=0.01, batch=200, hidden=32, solver="sgd"),
    "odd digits": Training("digits", 0.3, rate=0.00013, batch=128, hidden=32),  # is it odd? Slowly learned
}


def stream(tasks: int, seed: int = 0) -> Iterator[Arrival]:
    """Trainings in random order; every one has its own seed, and a key so that none is done twice."""
    generator = np.random.default_rng(seed)
    kinds = generator.choice(list(KINDS), tasks, p=[training.arrival for training in KINDS.values()]).tolist()
    for number, kind in enumerate(kinds):
        yield Arrival(kind, EPOCHS, int(generator.integers(1 << 31)), f"bundled {seed}.{number}")


def train(kind: str, epochs: int, seed: int) -> Outcome:
    """Train one network: reward max(0, 2·AUC − 1) on data it has not seen, and the same after every shorter training.

    >>> sorted(train("iris", 4, seed=1).observed)
    [1, 2]
    """
    one_thread()
    spent, training = Measure(), KINDS[kind]
    train_x, test_x, train_y, test_y = prepared(kind, seed)
    network = MLPClassifier(
        (training.hidden,), solver=training.solver, learning_rate_init=training.rate, batch_size=training.batch,
        random_state=seed,
    )  # fmt: skip
    classes, seen = np.unique(train_y), {}
    for epoch in range(1, epochs + 1):
        network.partial_fit(train_x, train_y, classes=classes)
        if epoch in EPOCHS:
            reward = worth(test_y, network.predict_proba(test_x))
            seen[epoch] = reward, spent.so_far()
    reward, cost = seen.pop(epochs)
    return Outcome(reward, cost, seen)


def prepared(kind: str, seed: int) -> list[Any]:
    """The set-up that every training has: load, split, leave out the strangest rows, scale."""
    x, y = getattr(datasets, f"load_{KINDS[kind].data}")(return_X_y=True)
    if kind == "odd digits":
        y = y % 2
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    forest = IsolationForest(n_estimators=TREES, contamination=0.02, random_state=seed)
    usual = forest.fit_predict(train_x) > 0
    scaler = StandardScaler().fit(train_x[usual])
    return [scaler.transform(train_x[usual]), scaler.transform(test_x), train_y[usual], test_y]


def worth(truth: Any, probabilities: Any) -> float:
    """max(0, 2·AUC − 1): nothing for guessing, 1 for perfection."""
    several = probabilities.shape[1] > 2
    area = roc_auc_score(truth, probabilities if several else probabilities[:, 1], multi_class="ovr")
    return max(0.0, 2.0 * float(area) - 1.0)


@cache
def one_thread() -> None:
    """Tasks run side by side; each keeps to one core."""
    threadpool_limits(1)
