"""`worthwhile train --data FOLDER`: real networks on images that the test draws, recorded, replayed and resumed."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_experiments import DRAWN, cut

from worthwhile import Scheduler, replay
from worthwhile.cli.main import main
from worthwhile.experiments.figure_5 import REAL
from worthwhile.experiments.figure_5_worlds import OWN, rules, worlds
from worthwhile.experiments.images.tasks import Order, Setting, count, learn, train
from worthwhile.experiments.normalisation import scalings
from worthwhile.tables import read_table

DOCS = Path(__file__).parents[2] / "docs"
CLASSES = {"rice": 5, "scenes": 6}
SMALL = ["--size", "12", "--steps", "0.02", "--pilot", "2", "--tasks", "2", "--slots", "1"]

# Keras' own conversion of a variable, on JAX with NumPy 2
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def quick_compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """JAX compiles every network anew; here it need not be fast, and what is the same is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("KERAS_BACKEND", "jax")
        yield


@pytest.fixture(scope="module", autouse=True)
def short_replays() -> Iterator[None]:
    """Every command replays the pilot's table; here it need not be for long."""
    with cut(DRAWN):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise, in which every class is bright in a place of its own; one picture is corrupt, one has another size."""
    folder, generator = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for task, classes in CLASSES.items():
        for number in range(classes):
            of_class = folder / task / f"class {number}"
            of_class.mkdir(parents=True)
            for picture in range(15):
                pixels = generator.integers(0, 160, (14, 14, 3), dtype=np.uint8)
                pixels[2 * number : 2 * number + 4] |= 128
                Image.fromarray(pixels).save(of_class / f"{picture}.jpg")
    (folder / "rice/class 0/3.jpg").write_bytes(b"no picture")
    Image.new("RGB", (30, 20)).save(folder / "rice/class 1/3.jpg")
    return folder


def test_a_training_shows_the_shorter_ones_and_is_the_same_from_the_same_seed(folder: Path) -> None:
    setting = Setting(str(folder), size=16, steps=0.05)
    long, short = learn("rice", 5, 7, setting), learn("rice", 2, 7, setting)
    assert list(long.points) == [1, 2, 3, 4, 5]
    assert list(short.points) == [1, 2]
    assert [long.points[epoch][0] for epoch in (1, 2)] == [short.points[epoch][0] for epoch in (1, 2)]
    seconds = [cost for _, cost in long.points.values()]
    assert long.setup > 0.0 < seconds[0]
    assert seconds == sorted(seconds)
    assert long.points[5][0] > 0.8  # it has learned something
    assert learn("rice", 1, 8, setting).points[1][0] != long.points[1][0]


def test_an_outcome_counts_as_it_was_asked_to(folder: Path) -> None:
    table = read_table(recorded(folder.parent / "bounds"))
    scaling = scalings(table, 0.05)["rice"]
    assert count((0.5, 2.0), 9.0, scaling) == pytest.approx((0.0, 0.05))
    assert count((0.9, 10.0), 9.0, scaling) == pytest.approx((1.0, 1.0))
    assert count((0.7, 6.0), 9.0, scaling) == pytest.approx((0.5, 0.525))
    assert count((0.3, 1.0), 9.0, scaling) == pytest.approx((-0.5, 0.05))  # beyond the pilot
    assert count((0.7, 6.0), 9.0, None) == (0.7, 15.0)
    outcome = train("rice", 2, Order(Setting(str(folder), size=12, steps=0.01), 0, None))
    assert list(outcome.observed) == [1]
    assert outcome.cost is not None
    assert outcome.cost > outcome.observed[1][1]


def recorded(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "table.csv").write_text("task_type,item_id,option,reward,cost\nrice,0,1,0.5,2\nrice,0,2,0.9,10\n")
    return folder / "table.csv"


@pytest.fixture(scope="module")
def done(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pilot and one real run of every policy."""
    out = tmp_path_factory.mktemp("done")
    assert main(["train", "--data", str(folder), "--out", str(out), *SMALL]) == 0
    return out


def document(capsys: pytest.CaptureFixture[str], *words: Any) -> Any:
    capsys.readouterr()
    assert main(["train", "--json", *map(str, words)]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_the_pilot_is_a_table_that_can_be_replayed(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = read_table(done / "image_training.csv")
    assert (table.crossed, len(table.kind)) == (True, 2 * (5 + 5))
    assert 0.0 <= table.reward.min() < table.reward.max() <= 1.0
    about = json.loads((done / "image_training.csv.about.json").read_text())
    assert about["setting"]["size"] == 12
    assert about["words"].startswith("images of 12 × 12 pixels, all there are")
    assert main(["replay", str(done / "image_training.csv"), "--tasks", "100", "--runs", "2"]) == 0
    words = ["reproduce", "figure-5", "--quick", "--tables", str(done), "--out", str(done / "again")]
    assert main(words) == 0
    first, again = (folder / "figure-5.csv" for folder in (done / "replayed", done / "again/figure-5"))
    assert first.read_bytes() == again.read_bytes()
    assert "f = 0.01" in capsys.readouterr().out


def test_every_policy_trained_the_same_tasks_and_all_is_recorded(done: Path) -> None:
    runs = sorted((done / "real/f0.05-pilot2-tasks2-seed0").glob("*.csv"))
    assert [path.name for path in runs] == [
        f"{policy}.1.csv" for policy in ("dol-rm-anytime", "ratio-imed", "ratio-ucb", "reward-ts")
    ]
    streams = []
    for path in runs:
        with Scheduler(str(path.with_suffix(".db")), create=False) as scheduler:
            streams.append([(line.kind, line.key) for line in scheduler.latest(9)])
            assert scheduler.summary().reports == 2
        assert replay(path).problem.cost[replay(path).problem.offered].min() >= 0.05
    assert all(stream == streams[0] for stream in streams)
    report = (done / "report.txt").read_text(encoding="utf-8")
    for word in (
        "always shortest",
        "Really trained: 2 tasks per run, costs: f = 0.05",
        "Our choices",
        "dol-rm-anytime",
    ):
        assert word in report
    with Image.open(done / "figure-5.png") as figure:
        assert min(figure.size) > 400


def test_the_same_command_trains_nothing_again_and_a_longer_one_goes_on(
    folder: Path, done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (done / "image_training.csv").read_bytes()
    facts, said = document(capsys, "--data", folder, "--out", done, *SMALL)
    assert "epochs, AUC" not in said
    assert "of 2:" not in said
    assert "rice/class 0/3.jpg" in said
    assert "1 corrupt left out" in said
    assert "of 2 sizes" in said
    assert (
        "no data for satellite, weather, cats_dogs: the others arrive with probabilities rice 0.5, scenes 0.5" in said
    )
    assert (done / "image_training.csv").read_bytes() == before
    assert {ends["runs"] for ends in facts["real"].values()} == {1}
    again = ["--policy", "ratio-imed", "--runs", "2"]
    facts, said = document(capsys, "--data", folder, "--out", done, *SMALL, *again)
    assert re.findall(r"(\S+), run (\d): (\d) of 2", said) == [("ratio-imed", "2", str(n)) for n in (1, 2)]
    assert facts["real"]["ratio-imed"]["runs"] == 2


def test_seconds_count_the_set_up(folder: Path, done: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for file in ("image_training.csv", "image_training.csv.about.json"):
        (tmp_path / file).write_bytes((done / file).read_bytes())
    words = [*SMALL, "--costs", "seconds", "--policy", "fixed-option,option=1"]
    facts, _ = document(capsys, "--data", folder, "--out", tmp_path, *words)
    assert facts["costs"] == "seconds with set-up"
    [path] = (tmp_path / "real").glob("seconds-*/*.csv")
    assert len(read_table(path).cost) == 2  # how they are counted is a formula with a test of its own


def test_what_cannot_be_trained_is_refused_before_anything_is(
    folder: Path, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rice").mkdir()
    out = ["--out", str(tmp_path / "out")]
    for words, message in (
        (["--data", "no/such", *out], "--data no/such: no such folder"),
        (["--data", str(tmp_path), *out], "rice has no folders of classes"),
        (["--data", str(folder), "--size", "9", *out], "scenes: images of 9 pixels are too small"),
        (["--data", str(folder), "--costs", "0", *out], "--costs 0: write a floor between 0 and 1"),
        (["--data", str(folder), "--costs", "much", *out], "--costs much"),
        (["--data", str(folder), "--steps", "2", *out], "--steps 2: a share"),
        (["--data", str(folder), "--pilot", "0", *out], "--pilot 0: at least 1"),
        (["--data", str(folder), "--images", "1", *out], "--images 1: at least 2"),
        (["--data", str(folder), "--policy", "nonsense", *out], "no policy 'nonsense'"),
        (["--data", str(folder), *SMALL, "--size", "16", "--out", str(done)], "a pilot with other settings (size 12"),
    ):
        assert main(["train", *words]) == 2
        assert message in capsys.readouterr().err
    assert not os.path.exists(tmp_path / "out")
    (tmp_path / "image_training.csv").touch()
    assert main(["train", "--data", str(folder), *SMALL, "--out", str(tmp_path)]) == 2
    assert "about.json does not say how image_training.csv came about" in capsys.readouterr().err


def test_the_documented_numbers_are_those_of_the_recorded_tables() -> None:
    page = (DOCS / "training.md").read_text(encoding="utf-8")
    for world in worlds(OWN).values():
        for ratio in rules(world.problem).values():
            assert f"| {ratio:.4g} |" in page
    with open(DOCS / "image-training-real.csv", newline="", encoding="utf-8") as file:
        own = [row for row in csv.DictReader(file) if row["observed"] == "False"]
    for policy in REAL:
        ratios = []
        for run in "123":
            mine = [row for row in own if (row["policy"], row["run"]) == (policy, run)]
            assert len(mine) == 30
            ratios.append(sum(float(row["reward"]) for row in mine) / sum(float(row["cost"]) for row in mine))
        error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
        assert re.search(rf"\| `{policy}`.*\| {np.mean(ratios):.2f} ± {error:.2f} \|", page)
