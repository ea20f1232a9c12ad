"""Folders of images: what is found, how it is split and read, and what is refused, by which message."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from worthwhile.errors import BadImages
from worthwhile.experiments.figure_5_worlds import arrivals
from worthwhile.experiments.images.folders import Files, Pictures, batches, check, files_of, load, tasks_in
from worthwhile.experiments.images.networks import NETWORKS
from worthwhile.experiments.images.tasks import TASKS, Setting

CLASSES = ("cats", "dogs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten small pictures of each of two classes."""
    for number, name in enumerate(CLASSES):
        for picture in range(10):
            path = tmp_path / "cats_dogs" / name / f"{picture}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (12, 9), (200 * number, picture, 0)).save(path)
    return tmp_path


def files_in(folder: Path, most: int | None = None) -> Files:
    return files_of(folder, "cats_dogs", 2, 0.2, most)


def names(files: Files, split: str) -> list[str]:
    return [f"{path.parent.name}/{path.stem}" for path, _ in files.paths[split]]


def manifest(folder: Path, lines: list[str]) -> None:
    (folder / "manifest.csv").write_text("\n".join(["file,split", *lines]) + "\n")


def everything(folder: Path, tested: str = "9") -> list[str]:
    paths = sorted((folder / "cats_dogs").rglob("*.jpg"))
    return [f"{path.relative_to(folder).as_posix()},{'test' if path.stem == tested else 'train'}" for path in paths]


def refused(folder: Path, *words: str) -> None:
    """The folder is refused with a message that has these words."""
    with pytest.raises(BadImages) as error:
        check(files_in(folder))
    for word in words:
        assert word in str(error.value)


def test_without_a_manifest_a_fixed_share_of_every_class_is_for_testing(folder: Path, tmp_path: Path) -> None:
    files = files_in(folder)
    assert files.classes == list(CLASSES)
    assert [len(files.paths[split]) for split in ("train", "test")] == [16, 4]
    assert sorted(label for _, label in files.paths["test"]) == [0, 0, 1, 1]
    assert not set(names(files, "train")) & set(names(files, "test"))
    shutil.copytree(folder / "cats_dogs", tmp_path / "moved" / "cats_dogs")
    assert names(files_in(tmp_path / "moved"), "test") == names(files, "test")


def test_a_manifest_decides_and_images_it_does_not_name_are_left_out(folder: Path) -> None:
    manifest(folder, [*everything(folder)[:-1], "cats_dogs/dogs/9.jpg,test", "weather/fog/1.jpg,train"])
    (folder / "cats_dogs/dogs/more.jpg").write_bytes((folder / "cats_dogs/dogs/1.jpg").read_bytes())
    files = files_in(folder)
    assert names(files, "test") == ["cats/9", "dogs/9"]
    assert len(files.paths["train"]) == 18


def test_a_limit_keeps_the_proportion_of_both_splits(folder: Path) -> None:
    files = files_in(folder, most=5)
    assert [len(files.paths[split]) for split in ("train", "test")] == [8, 2]
    assert [len(files_in(folder, most=1).paths[split]) for split in ("train", "test")] == [2, 2]


def test_images_of_any_size_and_colour_become_squares_in_three_colours(folder: Path) -> None:
    Image.new("L", (30, 5), 128).save(folder / "cats_dogs/cats/grey.png")
    Image.new("RGBA", (3, 3), (1, 2, 3, 0)).save(folder / "cats_dogs/cats/see-through.PNG")
    files = files_in(folder)
    assert check(files).sizes == {(12, 9): 20, (30, 5): 1, (3, 3): 1}
    pictures = load([*files.paths["train"], *files.paths["test"]], 8)
    assert pictures.pixels.shape == (22, 8, 8, 3)
    assert pictures.pixels.dtype == np.uint8
    assert pictures.labels.sum() == 10


def test_a_corrupt_image_is_counted_and_left_out(folder: Path) -> None:
    whole = (folder / "cats_dogs/cats/3.jpg").read_bytes()
    (folder / "cats_dogs/cats/3.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "cats_dogs/dogs/4.jpg").write_text("no picture")
    files = files_in(folder)
    looked = check(files)
    assert sorted(path.name for path in looked.corrupt) == ["3.jpg", "4.jpg"]
    assert looked.images == sum(looked.sizes.values()) == 18
    assert sum(len(load(part, 8).labels) for part in files.paths.values()) == 18


def test_many_corrupt_images_are_refused(folder: Path) -> None:
    for number in (3, 4):
        (folder / f"cats_dogs/cats/{number}.jpg").write_bytes(b"")
    refused(folder, "2 of the 10 images of class 'cats' cannot be read", "cats/3.jpg", "get them again")


def test_a_class_whose_only_test_image_is_corrupt_is_refused(folder: Path) -> None:
    manifest(folder, everything(folder))
    (folder / "cats_dogs/dogs/9.jpg").write_bytes(b"")
    refused(folder, "dogs/9.jpg cannot be read", "no other image for 'test'", "add one")


def test_an_empty_class_is_refused(folder: Path) -> None:
    shutil.rmtree(folder / "cats_dogs/dogs")
    (folder / "cats_dogs/dogs").mkdir()
    (folder / "cats_dogs/dogs/notes.txt").write_text("")
    refused(folder, "cats_dogs/dogs has no images (.jpg, .jpeg, .png)", "put some there")


def test_one_class_only_is_refused_and_so_are_three_or_none(folder: Path) -> None:
    shutil.rmtree(folder / "cats_dogs/dogs")
    refused(folder, "cats_dogs has one class only (cats)", "tells 2 apart")
    for name in ("dogs", "mice"):
        shutil.copytree(folder / "cats_dogs/cats", folder / "cats_dogs" / name)
    refused(folder, "3 classes (cats, dogs, mice)", "tells 2 apart")
    shutil.rmtree(folder / "cats_dogs")
    (folder / "cats_dogs").mkdir()
    refused(folder, "no folders of classes", "a folder for each is needed")


def test_a_missing_split_is_refused(folder: Path) -> None:
    manifest(folder, everything(folder, tested="none"))
    refused(folder, "cats_dogs/cats has no images for split 'test' (10 in all)", "manifest.csv")
    (folder / "manifest.csv").unlink()
    for picture in range(1, 10):
        (folder / f"cats_dogs/dogs/{picture}.jpg").unlink()
    refused(folder, "cats_dogs/dogs has no images for split 'test' (1 in all)", "add more images")


def test_a_bad_manifest_is_refused(folder: Path) -> None:
    manifest(folder, [*everything(folder), "cats_dogs/cats/lost.jpg,train"])
    refused(folder, "cats_dogs/cats/lost.jpg is missing", "restore it")
    manifest(folder, [*everything(folder), "cats_dogs/cats/1.jpg,valid"])
    refused(folder, "manifest.csv, row 22: cats_dogs/cats/1.jpg has split 'valid'; write train or test")
    (folder / "manifest.csv").write_text("name,part\n")
    refused(folder, "no column file, split")
    (folder / "manifest.csv").write_bytes(b"\xff\xfe\xff")
    refused(folder, "manifest.csv cannot be read")


def test_a_folder_without_a_known_task_is_refused(folder: Path) -> None:
    with pytest.raises(BadImages, match="no such folder; give one with images as TASK/CLASS/NAME"):
        tasks_in(folder / "nothing", list(TASKS))
    (folder / "cats_dogs").rename(folder / "pets")
    with pytest.raises(BadImages, match=r"none of the known tasks \(it has pets\); .*one of satellite, weather"):
        tasks_in(folder, list(TASKS))


def test_batches_go_through_all_images_before_any_comes_again() -> None:
    pictures = Pictures(np.arange(10, dtype=np.uint8).reshape(10, 1, 1, 1), np.arange(10))
    some = list(islice(batches(pictures, 4, np.random.default_rng(0)), 5))
    seen = np.concatenate([batch.labels for batch in some])
    assert sorted(seen[:10].tolist()) == sorted(seen[10:].tolist()) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()
    assert all((batch.pixels.ravel() == batch.labels).all() for batch in some)
    large = next(batches(pictures, 25, np.random.default_rng(0)))
    assert np.bincount(large.labels).min() >= 2


def test_the_papers_numbers_and_what_reduces_them(folder: Path) -> None:
    assert {task: image_task.steps for task, image_task in TASKS.items()} == {
        "satellite": 141, "weather": 38, "rice": 100, "scenes": 150, "cats_dogs": 30,
    }  # fmt: skip
    assert arrivals(list(TASKS)) == {"satellite": 0.1, "weather": 0.4, "rice": 0.2, "scenes": 0.2, "cats_dogs": 0.1}
    assert arrivals(["rice", "cats_dogs"]) == pytest.approx({"rice": 2 / 3, "cats_dogs": 1 / 3})
    assert [TASKS[task].epochs for task in ("rice", "weather")] == [(1, 2, 3, 4, 5), (1, 5, 10, 15, 20)]
    paper, small = Setting(str(folder)), Setting(str(folder), size=32, images=4, steps=0.001)
    assert [(paper.size_of(task), paper.steps_of(task)) for task in ("rice", "weather")] == [(224, 100), (150, 38)]
    assert (small.size_of("rice"), small.steps_of("rice")) == (32, 1)
    assert [len(small.files("cats_dogs").paths[split]) for split in ("train", "test")] == [6, 2]
    assert set(NETWORKS) == set(TASKS)
