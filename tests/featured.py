"""Tasks whose features matter, for tests of whoever shows that."""

from __future__ import annotations

from random import Random
from typing import Any

OPTIONS = ["kissat", "glucose"]


def known(number: int) -> dict[str, Any]:
    """What is known of a task: large ones, on a machine with a GPU or not, are half of them."""
    draw = Random(number)
    return {
        "clauses": draw.randrange(1, 20_000), "gpu": draw.random() < 0.5, "<b>": draw.random(), "job": f"job {number}",
    }  # fmt: skip


def solve(scheduler: Any, tasks: int, first: int = 0) -> None:
    """So many of them: kissat is better for the large ones, and every fourth shows what the other would have done."""
    for number in range(first, first + tasks):
        features = known(number)
        large, noise = features["clauses"] > 9000, 0.1 * Random(number + 1).random()
        worth = {"kissat": 0.2 + 0.8 * large, "glucose": 0.6}
        task = scheduler.decide("sat", OPTIONS, features=features)
        task.report(worth[task.option] + noise, 1.0)
        if number % 4 == 0:
            other = next(option for option in OPTIONS if option != task.option)
            task.observe(other, worth[other] + noise, 1.0)
