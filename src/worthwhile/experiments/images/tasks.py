"""The paper's five image classification tasks: really trained, really timed, and judged after every listed epoch."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import MissingExtra
from worthwhile.execution.metering import METERS, Measure, Outcome
from worthwhile.experiments.images import networks
from worthwhile.experiments.images.folders import Files, Pictures, batches, files_of, load
from worthwhile.experiments.images.frozen import frozen
from worthwhile.experiments.normalisation import Scaling

SHORT, LONG = (1, 2, 3, 4, 5), (1, 5, 10, 15, 20)  # epochs on offer
JUDGED_AT_ONCE = 50  # test images


class ImageTask(NamedTuple):
    """What the paper says of a task, but for `batch`."""

    epochs: tuple[int, ...]
    steps: int  # per epoch
    batch: int  # not in the paper: what makes its steps one pass over its images, 32 where that gives no such number
    test: float = 0.2  # share of the images, unless a manifest decides
    images: int | None = None  # per class, training and testing together


TASKS = {
    "satellite": ImageTask(SHORT, 141, batch=32),
    "weather": ImageTask(LONG, 38, batch=32),
    "rice": ImageTask(SHORT, 100, batch=40, images=1000),
    "scenes": ImageTask(LONG, 150, batch=20, images=625),  # 500 of them for training
    "cats_dogs": ImageTask(SHORT, 30, batch=32, test=0.1),
}


class Setting(NamedTuple):
    """Where the images are, and what is reduced: None means as in the paper."""

    folder: str
    size: int | None = None  # pixels
    images: int | None = None  # per class
    steps: float = 1.0  # share of the paper's steps per epoch
    weights: str = networks.DOWNLOAD  # of VGG19
    meter: str = "wall"

    def size_of(self, task: str) -> int:
        return self.size or networks.NETWORKS[task].size

    def steps_of(self, task: str) -> int:
        return max(1, round(self.steps * TASKS[task].steps))

    def files(self, task: str) -> Files:
        limits = [most for most in (TASKS[task].images, self.images) if most is not None]
        classes, share = networks.NETWORKS[task].classes, TASKS[task].test
        return files_of(Path(self.folder), task, classes, share, min(limits, default=None))


class Curve(NamedTuple):
    """What a training showed: its set-up in seconds; after each listed epoch the AUC and the seconds of training."""

    setup: float
    points: dict[int, tuple[float, float]]


class Order(NamedTuple):
    """A task's payload: how to train, from which seed, and how to count what came of it."""

    setting: Setting
    seed: int
    scaling: Scaling | None  # None: the AUC as it is, and seconds with set-up


def train(task: str, epochs: int, order: Order) -> Outcome:
    """Train one network; what it was after fewer epochs counts as observations of the shorter options."""
    curve = learn(task, epochs, order.seed, order.setting)
    counted = {epoch: count(point, curve.setup, order.scaling) for epoch, point in curve.points.items()}
    reward, cost = counted.pop(epochs)
    return Outcome(reward, cost, counted)


def count(point: tuple[float, float], setup: float, scaling: Scaling | None) -> tuple[float, float]:
    """Reward and cost of an AUC and its seconds."""
    area, seconds = point
    if scaling is None:
        return area, setup + seconds
    return float(scaling.reward(area)), float(scaling.cost(seconds))


def learn(task: str, epochs: int, seed: int, setting: Setting) -> Curve:
    """Train a network for so many epochs. Reading images, building and compiling are set-up; judging costs nothing."""
    k, meter = networks.keras(), METERS[setting.meter]
    networks.forget(k)
    known = frozen(task, setting, TASKS[task].batch) if networks.has_frozen(task) else None
    before, per_batch = (known.setup, known.seconds) if known else (0.0, 0.0)
    preparing = Measure(meter)
    training, testing = (known.training, known.testing) if known else pictures(task, setting)
    k.utils.set_random_seed(seed)
    model = networks.trained_part(task, setting.size_of(task))
    stream = batches(training, TASKS[task].batch, np.random.default_rng([seed, zlib.crc32(task.encode())]))
    first = next(stream)
    compile_step(model, inputs(k, task, first.pixels), first.labels)
    setup, spent, points = before + preparing.so_far(), 0.0, {}
    for epoch in range(1, epochs + 1):
        with Measure(meter) as measured:
            for _ in range(setting.steps_of(task)):
                batch = next(stream)
                model.train_on_batch(inputs(k, task, batch.pixels), batch.labels)
        spent += measured.cost + setting.steps_of(task) * per_batch
        if epoch in TASKS[task].epochs:
            points[epoch] = judge(k, task, model, testing), spent
    return Curve(setup, points)


def pictures(task: str, setting: Setting) -> tuple[Pictures, Pictures]:
    """The images to train and to test on."""
    files = setting.files(task)
    return load(files.paths["train"], setting.size_of(task)), load(files.paths["test"], setting.size_of(task))


def compile_step(model: Any, pixels: Any, labels: Any) -> None:
    """Have the backend compile a training step by taking one, and undo it."""
    model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    before = [variable.numpy() for variable in variables]
    model.train_on_batch(pixels, labels)
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)


def inputs(k: Any, task: str, images: Any) -> Any:
    """What the trained layers are given: the frozen layers' outputs, or pixels from 0 to 1."""
    return images if networks.has_frozen(task) else networks.scaled(k, images, vgg19=False)


def judge(k: Any, task: str, model: Any, testing: Pictures) -> float:
    """Test AUC, macro one-vs-rest where there are several classes."""
    try:
        from sklearn.metrics import roc_auc_score
    except ImportError:
        raise MissingExtra("the AUC", "images") from None
    said = [predicted(k, task, model, testing, first) for first in range(0, len(testing.labels), JUDGED_AT_ONCE)]
    outputs = np.concatenate(said).astype(np.float64)
    if outputs.shape[1] == 1:
        return float(roc_auc_score(testing.labels, outputs[:, 0]))
    shares = outputs / outputs.sum(axis=1, keepdims=True)
    return float(roc_auc_score(testing.labels, shares, multi_class="ovr", average="macro"))


def predicted(k: Any, task: str, model: Any, testing: Pictures, first: int) -> Any:
    """The outputs for some test images; the last portion is filled up, so that the backend compiles one size only."""
    portion = testing.pixels[first : first + JUDGED_AT_ONCE]
    filled = np.concatenate([portion, np.repeat(portion[:1], JUDGED_AT_ONCE - len(portion), axis=0)])
    outputs = model.predict_on_batch(inputs(k, task, filled))
    return np.asarray(outputs)[: len(portion)]
