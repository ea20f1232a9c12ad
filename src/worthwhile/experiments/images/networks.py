"""The five networks of the paper's Appendix E, layer by layer, in Keras 3 on whichever backend is there."""

from __future__ import annotations

import json
import logging
import os
import zlib
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadParameter, Error

BACKENDS = ("tensorflow", "torch", "jax")
INSTALL = "pip install 'worthwhile[images]' jax  (or tensorflow, or torch, instead of jax)"
DROPOUT = 0.5
RATE = 1e-3
COLOURS = 3
FROZEN, VGG19_SHRINKS, VGG19_CHANNELS = "vgg19", 32, 512  # the layers that are never trained, and what comes out
DOWNLOAD, NONE = "imagenet", "none"  # instead of a file of weights


def keras() -> Any:
    """Keras with the backend that the user has chosen, or else the first one that is installed."""
    if find_spec("keras") is None:
        raise Error(f"training on images needs Keras 3 and a backend: {INSTALL}")
    if "KERAS_BACKEND" not in os.environ:
        os.environ["KERAS_BACKEND"] = backend()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # or TensorFlow lists the instructions it could use
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # … and warns that a second network is compiled anew
    try:
        import keras as module
    except (ImportError, ValueError) as error:
        raise Error(f"Keras cannot start with {os.environ['KERAS_BACKEND']} ({error}): {INSTALL}") from None
    if int(module.__version__.split(".")[0]) < 3:
        raise Error(f"Keras {module.__version__} is too old: {INSTALL}")
    module.config.set_image_data_format("channels_last")
    return module


def forget(k: Any) -> None:
    """Drop the networks built so far, or a process that trains many would keep them all."""
    k.utils.clear_session()
    if k.backend.backend() == "jax":
        import_module("jax").clear_caches()


def backend() -> str:
    """What keras.json names if it is installed (Keras writes that file by itself), or else the first that is."""
    installed = [name for name in BACKENDS if find_spec(name)]
    if not installed:
        raise Error(f"Keras has no backend, neither {', '.join(BACKENDS)}: {INSTALL}")
    home = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        named = json.loads((home / "keras.json").read_text(encoding="utf-8"))["backend"]
    except (OSError, ValueError, LookupError, TypeError):
        named = None
    return str(named) if named in installed else installed[0]


class Network(NamedTuple):
    """A network, its classes, the paper's image size and parameter count, and the smallest images it can take."""

    layers: str  # as the paper's table lists them
    classes: int
    size: int
    parameters: int
    smallest: int


SATELLITE = "conv 32, conv 32, pool, conv 64, pool, conv 128, pool, flatten, dense 128, dropout, softmax 4"
SCENES = "conv 32, pool, conv 32, pool, flatten, dense 128, softmax 6"  # the paper forgets flatten; its counts do not
CATS_DOGS = "conv 32, conv 64, pool, conv 64, conv 128, pool, conv 128, conv 256, average, dense 1024, sigmoid 1"
NETWORKS = {
    "satellite": Network(SATELLITE, 4, 255, 13_882_084, 24),
    "weather": Network("vgg19, flatten, softmax 5", 5, 150, 20_065_349, 32),
    "rice": Network("conv 32, pool, flatten, dense 40, dropout, softmax 5", 5, 224, 15_772_021, 4),
    "scenes": Network(SCENES, 6, 150, 5_319_462, 10),
    "cats_dogs": Network(CATS_DOGS, 2, 150, 837_121, 32),
}


def layer(k: Any, words: str, size: int, weights: str) -> Any:
    """A layer in Keras: its name, then its filters or units."""
    name, _, count = words.partition(" ")
    without_count = {
        "vgg19": partial(vgg19, k, size, weights),
        "pool": k.layers.MaxPooling2D,
        "average": k.layers.GlobalAveragePooling2D,
        "flatten": k.layers.Flatten,
        "dropout": partial(k.layers.Dropout, DROPOUT),
    }
    if name in without_count:
        return without_count[name]()
    if name == "conv":
        return k.layers.Conv2D(int(count), 3, activation="relu")
    return k.layers.Dense(int(count), activation="relu" if name == "dense" else name)


def build(task: str, size: int | None = None, weights: str = NONE) -> Any:
    """A task's network, compiled; `weights` are VGG19's: a file, `imagenet` (Keras downloads them) or `none`."""
    k, network = keras(), NETWORKS[task]
    size = size or network.size
    check_size(task, size)
    layers = [layer(k, words, size, weights) for words in network.layers.split(", ")]
    return compiled(k, task, k.Sequential([k.Input((size, size, COLOURS)), *layers], name=task))


def compiled(k: Any, task: str, model: Any) -> Any:
    """Ready to be trained."""
    loss = "binary_crossentropy" if NETWORKS[task].classes == 2 else "sparse_categorical_crossentropy"
    model.compile(optimizer=k.optimizers.Adam(RATE), loss=loss)
    return model


def trained_part(task: str, size: int | None = None) -> Any:
    """A task's network without its frozen layers, compiled; the whole of it where none is frozen."""
    k, network = keras(), NETWORKS[task]
    size = size or network.size
    layers = [layer(k, words, size, NONE) for words in network.layers.split(", ") if words != FROZEN]
    side, depth = (size // VGG19_SHRINKS, VGG19_CHANNELS) if has_frozen(task) else (size, COLOURS)
    return compiled(k, task, k.Sequential([k.Input((side, side, depth)), *layers], name=task))


def has_frozen(task: str) -> bool:
    """Whether a task's network begins with layers that are never trained."""
    return NETWORKS[task].layers.startswith(FROZEN)


def frozen_layers(k: Any, task: str, size: int, weights: str) -> Any:
    """The layers that are never trained: where they are random, the same in every training, as ImageNet's would be."""
    k.utils.set_random_seed(zlib.crc32(task.encode()))
    return vgg19(k, size, weights)


def scaled(k: Any, pixels: Any, vgg19: bool) -> Any:
    """Pixels as the network wants them: VGG19's own scale, or 0 to 1."""
    numbers = pixels.astype(np.float32)
    return k.applications.vgg19.preprocess_input(numbers) if vgg19 else numbers / np.float32(255.0)


def check_size(task: str, size: int) -> None:
    """Refuse images that a task's layers would shrink to nothing."""
    smallest = NETWORKS[task].smallest
    if size < smallest:
        raise BadParameter(f"{task}: images of {size} pixels are too small for its layers; at least {smallest}")


def vgg19(k: Any, size: int, weights: str) -> Any:
    """VGG19 without its top, frozen as in the paper; without weights its layers stay as random as they begin."""
    given = None if weights == NONE else weights
    try:
        network = k.applications.VGG19(include_top=False, weights=given, input_shape=(size, size, COLOURS))
    except Exception as error:  # every backend and h5py has its own
        why = " ".join(str(error).split())[:200]
        raise BadParameter(
            f"VGG19's weights ({weights}) cannot be read: {why}; give --vgg19 FILE (Keras' "
            "vgg19_weights_tf_dim_ordering_tf_kernels_notop.h5), or --vgg19 none to go without them"
        ) from None
    network.trainable = False
    return network
