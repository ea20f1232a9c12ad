"""The networks of the paper's Appendix E: every layer's output shape and parameters, as its tables print them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from worthwhile.errors import BadParameter, Error
from worthwhile.experiments.images import networks
from worthwhile.experiments.images.frozen import said_of
from worthwhile.experiments.images.networks import (
    NETWORKS,
    NONE,
    backend,
    build,
    check_size,
    frozen_layers,
    has_frozen,
    scaled,
    trained_part,
)

# Keras' own conversion of a variable, on JAX with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

FLATTEN = ("flatten", (36 * 36 * 32,), 0)  # missing in the paper
APPENDIX_E: dict[str, list[tuple[str, tuple[int, ...], int]]] = {
    "satellite": [
        ("conv2d", (253, 253, 32), 896),
        ("conv2d", (251, 251, 32), 9248),
        ("max_pooling2d", (125, 125, 32), 0),
        ("conv2d", (123, 123, 64), 18496),
        ("max_pooling2d", (61, 61, 64), 0),
        ("conv2d", (59, 59, 128), 73856),
        ("max_pooling2d", (29, 29, 128), 0),
        ("flatten", (107648,), 0),
        ("dense", (128,), 13779072),
        ("dropout", (128,), 0),
        ("dense", (4,), 516),
    ],
    "weather": [("vgg19", (4, 4, 512), 20024384), ("flatten", (8192,), 0), ("dense", (5,), 40965)],
    "rice": [
        ("conv2d", (222, 222, 32), 896),
        ("max_pooling2d", (111, 111, 32), 0),
        ("flatten", (394272,), 0),
        ("dense", (40,), 15770920),
        ("dropout", (40,), 0),
        ("dense", (5,), 205),
    ],
    "scenes": [
        ("conv2d", (148, 148, 32), 896),
        ("max_pooling2d", (74, 74, 32), 0),
        ("conv2d", (72, 72, 32), 9248),
        ("max_pooling2d", (36, 36, 32), 0),
        FLATTEN,
        ("dense", (128,), 5308544),
        ("dense", (6,), 774),
    ],
    "cats_dogs": [
        ("conv2d", (148, 148, 32), 896),
        ("conv2d", (146, 146, 64), 18496),
        ("max_pooling2d", (73, 73, 64), 0),
        ("conv2d", (71, 71, 64), 36928),
        ("conv2d", (69, 69, 128), 73856),
        ("max_pooling2d", (34, 34, 128), 0),
        ("conv2d", (32, 32, 128), 147584),
        ("conv2d", (30, 30, 256), 295168),
        ("global_average_pooling2d", (256,), 0),
        ("dense", (1024,), 263168),
        ("dense", (1,), 1025),
    ],
}
TOTAL = {
    "satellite": 13_882_084,
    "weather": 20_065_349,
    "rice": 15_772_021,
    "scenes": 5_319_462,
    "cats_dogs": 837_121,
}


@pytest.mark.slow
@pytest.mark.parametrize("task", NETWORKS)
def test_a_network_has_the_papers_layers_shapes_and_parameters(task: str) -> None:
    model = build(task)
    layers = [
        (re.sub(r"_\d+$", "", layer.name), tuple(layer.output.shape[1:]), layer.count_params())
        for layer in model.layers
    ]
    assert layers == APPENDIX_E[task]
    assert model.count_params() == TOTAL[task] == NETWORKS[task].parameters
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    assert trainable == (40_965 if task == "weather" else TOTAL[task])


@pytest.mark.slow
@pytest.mark.parametrize("task", NETWORKS)
def test_a_network_can_be_built_for_its_smallest_images_and_none_below(task: str) -> None:
    smallest = NETWORKS[task].smallest
    assert build(task, smallest).output_shape == (None, 1 if task == "cats_dogs" else NETWORKS[task].classes)
    with pytest.raises(BadParameter, match=f"{task}: images of {smallest - 1} pixels .* at least {smallest}"):
        check_size(task, smallest - 1)


@pytest.mark.slow
def test_weights_that_are_not_there_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"--vgg19 FILE .* or --vgg19 none"):
        build("weather", 32, str(tmp_path / "none.h5"))


@pytest.mark.slow
def test_weights_of_ones_own_are_taken(tmp_path: Path) -> None:
    first = build("weather", 32)
    first.layers[0].save_weights(tmp_path / "vgg19.weights.h5")
    second = build("weather", 32, str(tmp_path / "vgg19.weights.h5"))
    for weight, other in zip(first.layers[0].weights, second.layers[0].weights, strict=True):
        assert np.array_equal(weight.numpy(), other.numpy())


@pytest.mark.parametrize(
    ("installed", "named", "chosen"),
    [
        (("jax",), None, "jax"),
        (("jax",), "tensorflow", "jax"),  # Keras wrote that by itself
        (("torch", "jax"), "jax", "jax"),
        (("torch", "jax"), None, "torch"),
        (("jax",), "{", "jax"),
    ],
)
def test_the_backend_is_the_users_if_it_is_there(
    installed: tuple[str, ...], named: str | None, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "find_spec", lambda name: name in installed or None)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    if named is not None:
        (tmp_path / "keras.json").write_text(named if named == "{" else json.dumps({"backend": named}))
    assert backend() == chosen


def test_without_keras_or_a_backend_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[str] = []
    monkeypatch.setattr(networks, "find_spec", lambda name: name in there or None)
    with pytest.raises(Error, match=r"needs Keras 3 and a backend: pip install 'worthwhile\[images\]' jax"):
        networks.keras()
    with pytest.raises(Error, match="no backend, neither tensorflow, torch, jax: pip install"):
        backend()
    there.append("keras")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    broken: Any = None
    monkeypatch.setitem(sys.modules, "keras", broken)
    with pytest.raises(Error, match=r"Keras cannot start with jax .*: pip install"):
        networks.keras()


@pytest.mark.slow
def test_frozen_layers_run_once_say_what_the_whole_network_would() -> None:
    """Pixels through VGG19 and the trained layer at once, or in two parts: the same to rounding."""
    k, generator = networks.keras(), np.random.default_rng(0)
    pixels = generator.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    frozen, trained, whole = frozen_layers(k, "weather", 32, NONE), trained_part("weather", 32), build("weather", 32)
    whole.layers[0].set_weights(frozen.get_weights())
    whole.layers[-1].set_weights(trained.layers[-1].get_weights())
    said = said_of(k, frozen, pixels, 4, "wall", spent := [])
    assert said.shape == (6, 1, 1, 512)
    assert len(spent) == 2
    assert min(spent) > 0.0
    in_parts = np.asarray(trained.predict_on_batch(said))
    at_once = np.asarray(whole.predict_on_batch(scaled(k, pixels, vgg19=True)))
    assert in_parts == pytest.approx(at_once, abs=1e-5)


def test_frozen_layers_are_the_same_in_every_training() -> None:
    k = networks.keras()
    first, second = (frozen_layers(k, "weather", 32, NONE).get_weights()[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert [task for task in NETWORKS if has_frozen(task)] == ["weather"]
    assert trained_part("weather").count_params() == 40_965  # as the paper's table prints
    assert trained_part("scenes", 10).count_params() == build("scenes", 10).count_params()
