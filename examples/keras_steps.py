"""A Keras callback that ends `fit` when the next epochs are not worth their cost. Prints one line per training."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

from worthwhile import Scheduler, Task

EPOCHS = list(range(1, 9))


class WorthIt(keras.callbacks.Callback):
    """Stops where the task does; `monitor` is the reward so far."""

    def __init__(self, task: Task, lengths: list[int], monitor: str) -> None:
        super().__init__()
        self.task, self.monitor, self.steps = task, monitor, iter(task.steps(lengths))
        next(self.steps)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.task.progress(float((logs or {})[self.monitor]))
        if next(self.steps, None) is None:
            self.model.stop_training = True


def train(scheduler: Scheduler, seed: int) -> int:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(256, 2)).astype("float32")
    inside = (np.linalg.norm(points, axis=1) < 1.2).astype("float32")
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.Adam(0.02), loss="binary_crossentropy", metrics=["accuracy"])
    with scheduler.task("circle", EPOCHS) as task:
        callback = WorthIt(task, EPOCHS, "val_accuracy")
        model.fit(points, inside, epochs=EPOCHS[-1], validation_split=0.25, verbose=0, callbacks=[callback])
    return int(task.option)


def main(trainings: int = 6) -> None:
    with Scheduler(seed=1) as scheduler:
        for seed in range(trainings):
            print(f"training {seed}: {train(scheduler, seed)} of {EPOCHS[-1]} epochs")


if __name__ == "__main__":
    main()
