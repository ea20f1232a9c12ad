"""Folders of images as training data: the files, which of them are for training and which for testing, their pixels."""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadImages, MissingExtra

MANIFEST = "manifest.csv"
ENDINGS = (".jpg", ".jpeg", ".png")
SPLITS = ("train", "test")
MOST_BAD = 0.1  # of a class; more corrupt images than that are no accident
Pixels = npt.NDArray[np.uint8]
Features = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


class Files(NamedTuple):
    """The images of a task: files of both splits, and the number of the class that each belongs to."""

    task: str
    classes: Sequence[str]
    paths: Mapping[str, Sequence[tuple[Path, int]]]  # by split


class Pictures(NamedTuple):
    """Decoded images, all of one size."""

    pixels: Pixels | Features  # (images, size, size, colours), or what frozen layers say of them
    labels: Labels


class Checked(NamedTuple):
    """What a look at every image of a task found."""

    images: int
    corrupt: Sequence[Path]
    sizes: Mapping[tuple[int, int], int]  # how many images are so wide and so high


def tasks_in(folder: Path, known: Sequence[str]) -> list[str]:
    """The known tasks that a folder has data for."""
    if not folder.is_dir():
        raise BadImages(f"--data {folder}: no such folder; give one with {shape(known)}, or 'bundled'")
    tasks = [task for task in known if (folder / task).is_dir()]
    if not tasks:
        there = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_dir())[:6]) or "no folders"
        raise BadImages(f"{folder} has none of the known tasks (it has {there}); it needs {shape(known)}")
    return tasks


def shape(known: Sequence[str]) -> str:
    return f"images as TASK/CLASS/NAME.jpg, TASK one of {', '.join(known)}"


def files_of(folder: Path, task: str, classes: int, test: float, most: int | None = None) -> Files:
    """The images of a task, at most so many per class; `manifest.csv` decides the split, or else a fixed shuffle.

    With a manifest, images that it does not name are left out.
    """
    names = sorted(path.name for path in (folder / task).iterdir() if path.is_dir())
    if len(names) != classes:
        words = {0: "no folders of classes", 1: "one class only"}.get(len(names), f"{len(names)} classes")
        words += f" ({', '.join(names)})" if names else ""
        raise BadImages(f"{folder / task} has {words}; its network tells {classes} apart: a folder for each is needed")
    manifest = read_manifest(folder / MANIFEST)
    paths: dict[str, list[tuple[Path, int]]] = {split: [] for split in SPLITS}
    for label, name in enumerate(names):
        of_class = folder / task / name
        images = sorted(path for path in of_class.iterdir() if path.suffix.lower() in ENDINGS)
        if not images:
            raise BadImages(f"{of_class} has no images ({', '.join(ENDINGS)}); put some there")
        parts = by_manifest(folder, images, manifest) if manifest else by_share(images, test)
        for split, part in limited(parts, most).items():
            if not part:
                remedy = f"name some in {folder / MANIFEST}" if manifest else "add more images"
                raise BadImages(f"{of_class} has no images for split '{split}' ({len(images)} in all); {remedy}")
            paths[split] += [(path, label) for path in part]
    return Files(task, names, paths)


def read_manifest(path: Path) -> dict[str, str]:
    """The split of every file that a manifest names, by its path in the folder; nothing if there is no manifest."""
    if not path.exists():
        return {}
    splits = {}
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = {"file", "split"} - set(reader.fieldnames or ())
            if missing:
                raise BadImages(f"{path} has no column {', '.join(sorted(missing))}; it needs file and split")
            for row in reader:
                if row["split"] not in SPLITS:
                    where = f"{path}, row {reader.line_num}: {row['file']}"
                    raise BadImages(f"{where} has split {row['split']!r}; write train or test")
                splits[row["file"]] = row["split"]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadImages(f"{path} cannot be read: {error}") from None
    return splits


def by_manifest(folder: Path, images: Sequence[Path], manifest: Mapping[str, str]) -> dict[str, list[Path]]:
    """The images of a class as the manifest splits them; all that it names must be there."""
    inside = f"{images[0].parent.relative_to(folder).as_posix()}/"
    named = {name for name in manifest if name.startswith(inside)}
    gone = sorted(named - {path.relative_to(folder).as_posix() for path in images})
    if gone:
        raise BadImages(f"{folder / gone[0]} is missing ({len(gone)} like it), but {MANIFEST} names it; restore it")
    split_of = {path: manifest.get(path.relative_to(folder).as_posix()) for path in images}
    return {split: [path for path in images if split_of[path] == split] for split in SPLITS}


def by_share(images: Sequence[Path], test: float) -> dict[str, list[Path]]:
    """The same images are for testing every time, wherever the folder is: those whose names shuffle to the front."""
    shuffled = sorted(images, key=lambda path: (zlib.crc32(path.name.encode()), path.name))
    tested = set(shuffled[: max(1, round(test * len(images)))] if len(images) > 1 else [])
    return {"train": [path for path in images if path not in tested], "test": sorted(tested)}


def limited(parts: Mapping[str, Sequence[Path]], most: int | None) -> dict[str, Sequence[Path]]:
    """The first images of each split, at most so many together and in the same proportion, at least one of each."""
    total = sum(map(len, parts.values()))
    if most is None or total <= most:
        return dict(parts)
    tested = max(1, round(most * len(parts["test"]) / total))
    return {"train": parts["train"][: max(1, most - tested)], "test": parts["test"][:tested]}


def decoded(path: Path, size: int | None = None) -> Any:
    """An image in three colours, resized to a square if a size is given; None if it is corrupt."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtra("training on images", "images") from None
    try:
        with Image.open(path) as image:
            colours = image.convert("RGB")
            return colours if size is None else colours.resize((size, size), Image.Resampling.BILINEAR)
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError, Image.DecompressionBombError):
        return None


def check(files: Files) -> Checked:
    """Look at every image; refuse a class in which too many are corrupt."""
    sizes: Counter[tuple[int, int]] = Counter()
    corrupt: list[tuple[Path, int]] = []
    everything = [labelled for part in files.paths.values() for labelled in part]
    for path, label in everything:
        image = decoded(path)
        if image is None:
            corrupt.append((path, label))
        else:
            sizes[image.size] += 1
    bad, there = (Counter(label for _, label in images) for images in (corrupt, everything))
    for label, count in bad.items():
        if count > MOST_BAD * there[label] and count > 1:
            first = next(path for path, its_label in corrupt if its_label == label)
            many = f"{count} of the {there[label]} images of class {files.classes[label]!r} cannot be read"
            raise BadImages(f"{files.task}: {many}, {first} for one; get them again")
    check_what_is_left(files, {path for path, _ in corrupt})
    return Checked(len(everything) - len(corrupt), [path for path, _ in corrupt], sizes)


def check_what_is_left(files: Files, corrupt: set[Path]) -> None:
    """Every class must still have images in both splits."""
    for split, part in files.paths.items():
        left = {label for path, label in part if path not in corrupt}
        for label, name in enumerate(files.classes):
            if label not in left:
                first = next(path for path, its_label in part if its_label == label)
                raise BadImages(f"{first} cannot be read, and class {name!r} has no other image for '{split}'; add one")


def load(part: Sequence[tuple[Path, int]], size: int) -> Pictures:
    """The images of a split, resized to squares; corrupt ones are left out, as `check` has said."""
    readable = [(np.asarray(image), label) for path, label in part if (image := decoded(path, size)) is not None]
    pixels, labels = zip(*readable, strict=True)
    return Pictures(np.stack(pixels), np.array(labels, dtype=np.int64))


def batches(pictures: Pictures, batch: int, generator: np.random.Generator) -> Iterator[Pictures]:
    """Batches for ever, all of one size: shuffled passes over the images, one after another."""
    waiting: Labels = np.zeros(0, np.int64)
    while True:
        while len(waiting) < batch:
            waiting = np.concatenate([waiting, generator.permutation(len(pictures.labels))])
        chosen, waiting = waiting[:batch], waiting[batch:]
        yield Pictures(pictures.pixels[chosen], pictures.labels[chosen])
