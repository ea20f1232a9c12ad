"""The command in a process of its own: interrupted, piped into nothing, on a bare NumPy, with a policy of one's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import tqdm.auto
from tqdm.auto import tqdm as progress_bar

import worthwhile
from waiting import NET
from worthwhile import seven_kinds, simulate
from worthwhile.cli.main import main
from worthwhile.cli.simulate import USUAL

OWN_POLICY = """
from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision
from worthwhile.policies.fixed import State


class Last(NamedTuple):
    skip: int = 0

    def init(self, kinds, options):
        return State(np.zeros(1))

    def choose(self, state, kind, options, pending, rng):
        return Decision(options[len(options) - 1 - min(self.skip, len(options) - 1)], 0.0, 0.0)

    def judge(self, state, kind, option):
        return Decision(option, 0.0, 0.0)

    def learn(self, state, kind, made, reward, cost, rng):
        state.tasks[0] += 1.0

    def observe(self, state, kind, option, reward, cost, rng):
        pass
"""


def command(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The real thing, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "worthwhile", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=NET,
        **settings,
    )


def test_version_says_which() -> None:
    assert command("--version").stdout.strip() == f"worthwhile {worthwhile.__version__}"


def test_a_policy_of_ones_own_is_found_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "my_policies.py").write_text(OWN_POLICY)
    script = Path(sys.executable).with_name("worthwhile")
    wanted = ("--policy", "my_policies:Last", "--policy", "my_policies:Last,skip=1", "--policy", "optimum")
    arguments = [script, "simulate", "two-kinds-0.8", *wanted, "--tasks", "200", "--runs", "2", "--json"]
    ended = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=NET, check=True)
    rows = {row["policy"]: row["regret"] for row in json.loads(ended.stdout)["policies"]}
    assert rows["my_policies:Last"] == rows["optimum"] == 0.0  # the last option of every kind is the best here
    assert rows["my_policies:Last,skip=1"] > 0.0


def test_a_terminal_without_greek_still_gets_its_table() -> None:
    ended = command("solve", "seven-kinds", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "2.1087" in ended.stdout


def test_a_reader_who_leaves_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "worthwhile", "policies"],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=NET,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_progress_is_shown_beside_the_answer_not_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tqdm.auto, "tqdm", lambda **how: progress_bar(**(how | {"delay": 0.0})))  # not after a second
    few = ("--tasks", "200", "--runs", "3", "--engine", "python", "--progress", "--json")
    assert main(["simulate", "two-kinds-0.8", "--policy", "ratio-imed", *few]) == 0
    shown = capsys.readouterr()
    assert "tasks/s" in shown.err
    assert json.loads(shown.out)["runs"] == 3


INTERRUPTIBLE = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
sys.argv[0] = "worthwhile"
runpy.run_module("worthwhile", run_name="__main__")
"""


def interrupt(*arguments: str, once: bytes) -> tuple[int, str, str]:
    """Send Ctrl-C to the command as soon as its standard error contains some word."""
    started = [sys.executable, "-c", INTERRUPTIBLE, *arguments]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            seen = b""
            while once not in seen:
                read = os.read(process.stderr.fileno(), 4096)
                assert read, f"ended before the interrupt: {seen.decode()}"
                seen += read
            process.send_signal(signal.SIGINT)
            shown, rest = process.communicate(timeout=NET)
        finally:
            process.kill()
    return process.returncode, shown.decode(), (seen + rest).decode()


@pytest.mark.slow
def test_ctrl_c_keeps_the_finished_runs_and_only_those(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    many = ("--tasks", "300", "--runs", "20000", "--engine", "python", "--threads", "2", "--progress")
    names = ("ratio-imed", "oracle")
    wanted = ("--policy", names[0], "--policy", names[1])
    code, shown, said = interrupt("simulate", "seven-kinds", *many, *wanted, "--out", str(path), once=b"tasks/s")
    assert code == 130
    assert "Traceback" not in said
    table = pyarrow.parquet.read_table(path)
    runs = np.unique(table["run"].to_numpy())
    assert 0 < len(runs) < 20000
    assert f"interrupted: {len(runs)} of 20000 runs are finished and kept" in said
    assert f"300 tasks × {len(runs):,} runs" in shown
    sure = runs[runs < 5]
    again = simulate(seven_kinds(), names, tasks=300, runs=5, engine="python")
    saved = table["regret"].to_numpy().reshape(len(runs), len(names), len(again.marks))
    assert len(sure) > 0
    assert np.array_equal(saved[: len(sure)], again.measure("regret")[sure])
    assert json.loads(table.schema.metadata[b"worthwhile"])["finished_runs"] == len(runs)


@pytest.mark.slow
def test_ctrl_c_before_the_first_run_is_finished_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    endless = ("--tasks", "1e12", "--runs", "2", "--progress", "--policy", "random-option", "--out", str(path))
    code, shown, said = interrupt("simulate", "seven-kinds", *endless, once=b"tasks/s")
    assert (code, shown) == (130, "")
    assert "interrupted: 0 of 2 runs are finished and kept" in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with NumPy and worthwhile in it, and none of the extras."""
    folder = tmp_path_factory.mktemp("bare")
    for package in ("numpy", "numpy.libs"):
        source = Path(np.__file__).parent.with_name(package)
        if source.exists():
            (folder / package).symlink_to(source)
    (folder / "worthwhile").symlink_to(Path(worthwhile.__file__).parent)
    metadata = Path(str(distribution("worthwhile").locate_file("")))
    shutil.copytree(next(metadata.glob("worthwhile-*.dist-info")), folder / "worthwhile-0.dist-info")
    return folder


def without_extras(bare: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-m", "worthwhile", *arguments],
        check=False,
        cwd=bare,
        env={"PYTHONPATH": str(bare)},
        capture_output=True,
        text=True,
        timeout=NET,
    )


def test_numpy_alone_is_enough(bare: Path) -> None:
    process = without_extras(bare, "simulate", "seven-kinds", "--tasks", "300", "--runs", "3", "--json")
    assert process.stderr == ""
    results = simulate(seven_kinds(), USUAL, tasks=300, runs=3, engine="python")
    rows = json.loads(process.stdout)["policies"]
    assert {row["policy"]: row["regret"] for row in rows} == results.mean("regret")


@pytest.mark.parametrize(
    ("option", "extra"),
    [
        (("--plot", "figure.png"), "plot"),
        (("--out", "runs.parquet"), "tables"),
        (("--engine", "compiled"), "fast"),
        (("--progress",), "progress"),
    ],
)
def test_a_missing_extra_is_named_before_anything_runs(bare: Path, option: tuple[str, ...], extra: str) -> None:
    ended = without_extras(bare, "simulate", "seven-kinds", "--tasks", "100000000", *option)
    assert ended.returncode == 2
    assert f"pip install 'worthwhile[{extra}]'" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
