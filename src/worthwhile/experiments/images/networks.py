"""The five networks of the paper's Appendix E, layer by layer, in Keras 3 on whichever backend is there."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter, Error

BACKENDS = ("tensorflow", "torch", "jax")
INSTALL = "pip install 'worthwhile[images]' jax  (or tensorflow, or torch, instead of jax)"
DROPOUT = 0.5
RATE = 1e-3
COLOURS = 3
DOWNLOAD, NONE = "imagenet", "none"  # instead of a file of weights


def keras() -> Any:
    """Keras with the backend that the user has chosen, or else the first one that is installed."""
    if find_spec("keras") is None:
        raise Error(f"training on images needs Keras 3 and a backend: {INSTALL}")
    if "KERAS_BACKEND" not in os.environ:
        os.environ["KERAS_BACKEND"] = backend()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # or TensorFlow tells which instructions it could use
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # … and warns that a second network is compiled anew
    try:
        import keras as module
    except (ImportError, ValueError) as reason:
        raise Error(f"Keras cannot start with {os.environ['KERAS_BACKEND']} ({reason}): {INSTALL}") from None
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


def satellite(k: Any, size: int, weights: str) -> list[Any]:
    layers = k.layers
    return [
        layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(128, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dropout(DROPOUT),
        layers.Dense(4, activation="softmax"),
    ]


def weather(k: Any, size: int, weights: str) -> list[Any]:
    return [vgg19(k, size, weights), k.layers.Flatten(), k.layers.Dense(5, activation="softmax")]


def rice(k: Any, size: int, weights: str) -> list[Any]:
    layers = k.layers
    return [
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(40, activation="relu"),
        layers.Dropout(DROPOUT),
        layers.Dense(5, activation="softmax"),
    ]


def scenes(k: Any, size: int, weights: str) -> list[Any]:
    layers = k.layers
    return [
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),  # missing in the paper's table; its 5 308 544 parameters need it
        layers.Dense(128, activation="relu"),
        layers.Dense(6, activation="softmax"),
    ]


def cats_dogs(k: Any, size: int, weights: str) -> list[Any]:
    layers = k.layers
    return [
        layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.Conv2D(128, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(128, 3, activation="relu"),
        layers.Conv2D(256, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(1024, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]


class Network(NamedTuple):
    """A network, its classes, the paper's image size and parameter count, and the smallest images it can take."""

    layers: Callable[[Any, int, str], list[Any]]
    classes: int
    size: int
    parameters: int
    smallest: int


NETWORKS = {
    "satellite": Network(satellite, 4, 255, 13_882_084, 24),
    "weather": Network(weather, 5, 150, 20_065_349, 32),
    "rice": Network(rice, 5, 224, 15_772_021, 4),
    "scenes": Network(scenes, 6, 150, 5_319_462, 10),
    "cats_dogs": Network(cats_dogs, 2, 150, 837_121, 32),
}


def build(task: str, size: int | None = None, weights: str = NONE) -> Any:
    """A task's network, compiled; `weights` are VGG19's: a file, `imagenet` (Keras downloads them) or `none`."""
    k, network = keras(), NETWORKS[task]
    size = size or network.size
    check_size(task, size)
    model = k.Sequential([k.Input((size, size, COLOURS)), *network.layers(k, size, weights)], name=task)
    loss = "binary_crossentropy" if network.classes == 2 else "sparse_categorical_crossentropy"
    model.compile(optimizer=k.optimizers.Adam(RATE), loss=loss)
    return model


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
    except Exception as reason:  # every backend and h5py has its own
        raise BadParameter(no_weights(weights, reason)) from None
    network.trainable = False
    return network


def no_weights(weights: str, reason: Exception) -> str:
    """What to do when VGG19's weights cannot be had."""
    why = " ".join(str(reason).split())[:200]
    return (
        f"VGG19's weights ({weights}) cannot be read: {why}; give --vgg19 FILE (Keras' "
        "vgg19_weights_tf_dim_ordering_tf_kernels_notop.h5), or --vgg19 none to go without them"
    )
