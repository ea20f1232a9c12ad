"""Layers that are never trained say the same of an image in every epoch: worked out once per image, paid for each time.

The weather network is VGG19, frozen, and one trained layer. Its seconds are counted as if VGG19 ran on every batch, as
in the paper: those measured on a batch, times the batches. Only the waiting is shorter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from worthwhile.execution.metering import METERS, Measure
from worthwhile.experiments.images import networks
from worthwhile.experiments.images.folders import Features, Pictures, load

if TYPE_CHECKING:
    from worthwhile.experiments.images.tasks import Setting


class Frozen(NamedTuple):
    """What the frozen layers say of every image, and what they cost."""

    training: Pictures
    testing: Pictures
    setup: float  # seconds: reading images, building and compiling these layers
    seconds: float  # per batch


@lru_cache(maxsize=1)
def frozen(task: str, setting: Setting, batch: int) -> Frozen:
    """Run the frozen layers on all images of a task; kept for the next training in this process."""
    k, size, preparing = networks.keras(), setting.size_of(task), Measure(METERS[setting.meter])
    layers, files = networks.frozen_layers(k, task, size, setting.weights), setting.files(task)
    pictures = [load(files.paths[split], size) for split in ("train", "test")]
    setup, spent = preparing.so_far(), list[float]()
    said = [said_of(k, layers, part.pixels, batch, setting.meter, spent) for part in pictures]
    training, testing = (Pictures(features, part.labels) for features, part in zip(said, pictures, strict=True))
    return Frozen(training, testing, setup + spent[0], float(np.mean(spent[1:] or spent)))  # the first is compiled


def said_of(k: Any, layers: Any, pixels: Any, batch: int, meter: str, spent: list[float]) -> Features:
    """The frozen layers' outputs, batch by batch, all of one size; the seconds of each batch are added to `spent`."""
    said = []
    for first in range(0, len(pixels), batch):
        portion = pixels[first : first + batch]
        filled = np.concatenate([portion, np.repeat(portion[:1], batch - len(portion), axis=0)])
        with Measure(METERS[meter]) as measured:
            outputs = np.asarray(layers.predict_on_batch(networks.scaled(k, filled, vgg19=True)))
        spent.append(measured.cost)
        said.append(outputs[: len(portion)])
    return np.concatenate(said)
