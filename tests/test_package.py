"""Faces: what is built and uploaded works where nothing but NumPy and apsw comes along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

import worthwhile

ROOT = Path(__file__).parents[1]


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command away from the checkout, so that nothing is found there by chance."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "PYTEST"))}
    words = [str(part) for part in command]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT.anchor, env=clean, check=False)


def output(*command: str | Path) -> str:
    """What a command prints; it must succeed."""
    done = call(*command)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def build(form: str, folder: Path) -> Path:
    """The wheel or sdist that would be uploaded."""
    output(sys.executable, "-m", "build", f"--{form}", "--outdir", folder / form, ROOT)
    [file] = (folder / form).iterdir()
    return file


def install(file: Path, folder: Path) -> Path:
    """The programs of a clean environment with nothing but the file and what it requires."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    output(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file)
    return programs


def check_contents(python: Path) -> None:
    """NumPy and apsw alone come along; the types and the licence are there."""
    listed = json.loads(output(python, "-m", "pip", "list", "--format=json"))
    assert {package["name"] for package in listed} - {"pip", "setuptools"} == {"apsw", "numpy", "worthwhile"}
    files = output(python, "-c", "from importlib.metadata import files; print(*files('worthwhile'), sep='\\n')")
    names = [name.replace("\\", "/") for name in files.splitlines()]
    assert {"worthwhile/py.typed", "worthwhile/experiments/image_training.csv"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def check_commands(command: Path, folder: Path) -> None:
    """It says its version, solves, simulates without numba, and says what a figure needs."""
    assert output(command, "--version").strip() == f"worthwhile {worthwhile.__version__}"
    solved = json.loads(output(command, "solve", "seven-kinds", "--json"))
    assert solved["best_ratio"] == pytest.approx(2.425 / 1.15)
    short = ("simulate", "seven-kinds", "--policy", "ratio-imed", "--tasks", "500", "--runs", "2")
    assert "ratio-imed" in output(command, *short, "--out", folder / "curves.csv")
    assert (folder / "curves.csv").read_text().startswith("policy,run,task,reward,cost,")
    assert json.loads((folder / "curves.csv.about.json").read_text())["worthwhile"] == worthwhile.__version__
    assert output(command, "decide", folder / "tasks.db", "weather", "5").strip() == "1\t5"
    refused = call(command, *short, "--plot", folder / "figure.png")
    assert refused.returncode == 2
    assert "pip install 'worthwhile[plot]'" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["wheel", "sdist"])
def test_what_is_built_works_in_a_clean_environment(form: str, tmp_path: Path) -> None:
    programs = install(build(form, tmp_path), tmp_path / "clean")
    check_contents(programs / "python")
    check_commands(programs / "worthwhile", tmp_path)


@pytest.mark.slow
def test_the_source_archive_has_what_a_contributor_needs(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "LICENSE", "README.md", "docs/index.md", "tests/docs/test_docs.py", "pyproject.toml"} <= names
    assert not any("__pycache__" in name or name.startswith((".venv", "results")) for name in names)


def loaded(line: str) -> set[str]:
    """The packages that a fresh Python has loaded after a line."""
    names = output(sys.executable, "-c", f"{line}; import sys; print(*sys.modules)").split()
    return {name.partition(".")[0] for name in names}


def test_importing_worthwhile_loads_nothing_and_its_names_no_optional_dependency() -> None:
    assert not {"apsw", "numpy"} & loaded("import worthwhile")
    extras = {"distributed", "httpx", "matplotlib", "msgspec", "numba", "psycopg", "pyarrow", "ray", "sklearn", "tqdm"}
    every = loaded("from worthwhile import *")
    assert {"apsw", "numpy"} & every == {"numpy"}  # a SQLite file is opened with apsw, and by nothing else
    assert not extras & every
