"""The examples do what they say, as a reader would run them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs"
PAGES = (*sorted(DOCS.glob("jobs/*.md")), DOCS / "examples.md")
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
SCRIPTS = ("time_limits.py", "model_choice.py", "ci_runners.py", "crowd_workers.py", "compression.py")
TIMED = ("time_limits.py", "compression.py")  # what they find depends on the machine
NOTEBOOK = EXAMPLES / "first_steps.ipynb"
EXECUTE = """\
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False).execute()
nbformat.write(notebook, sys.argv[2])
"""


def run(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@cache
def printed(name: str) -> str:
    done = run(str(EXAMPLES / name))
    assert done.stderr == ""
    return done.stdout


def without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "#", text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_it_and_the_page_say(name: str) -> None:
    words = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    assert words is not None
    shown = re.sub("^ {4}", "", words.partition("Prints:\n\n")[2] + "\n", flags=re.M)
    assert f"```console\n$ python examples/{name}\n{shown}```" in PAGE
    assert without_numbers(shown) == without_numbers(printed(name))
    assert name in TIMED or shown == printed(name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_page_shows_a_part_of_the_script(name: str) -> None:
    [part] = re.findall(rf"^<!-- not run: a part of {name} -->\n```python\n(.*?)^```$", PAGE, re.M | re.S)
    assert part in (EXAMPLES / name).read_text(encoding="utf-8")


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def outputs(cell: Any) -> tuple[str, list[str]]:
    """What a cell prints, and what else it shows."""
    text = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    return text, [kind for output in cell["outputs"] for kind in sorted(output.get("data", ()))]


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_is_stored_in_it(tmp_path: Path) -> None:
    run("-c", EXECUTE, str(NOTEBOOK), str(tmp_path / "again.ipynb"), folder=tmp_path)
    stored, again = code_cells(NOTEBOOK), code_cells(tmp_path / "again.ipynb")
    assert [cell["source"] for cell in stored] == [cell["source"] for cell in again]
    assert [outputs(cell) for cell in stored] == [outputs(cell) for cell in again]
    assert [cell["execution_count"] for cell in stored] == list(range(1, len(stored) + 1))
    assert any("image/png" in outputs(cell)[1] for cell in stored)


def test_the_notebook_is_small_and_says_nothing_of_where_it_was_made() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 100_000
    notebook = json.loads(text)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
    assert not re.search(r"/(home|tmp|Users|root)/|\\\\Users", text)
    assert "stderr" not in {output.get("name") for cell in code_cells(NOTEBOOK) for output in cell["outputs"]}


def test_small_instances_get_less_time_than_large_ones() -> None:
    text = printed("time_limits.py")
    assert ", from 150 searches\n" in text
    limits = {kind: float(limit) for kind, limit in re.findall(r"^(\w+): mostly ([\d.]+) s", text, re.M)}
    assert set(limits) == {"village", "town", "region"}
    assert limits["village"] <= limits["region"]


def test_every_kind_of_question_is_answered_well_enough_for_a_seventh_of_what_the_best_model_costs() -> None:
    text = printed("model_choice.py")
    kinds = re.findall(r"^(.+): ([\d.]+)% right, (\d+)% wanted; (\w+)", text, re.M)
    assert [(kind, model) for kind, _, _, model in kinds] == [
        ("look-up", "small"),
        ("summary", "medium"),
        ("proof", "large"),
    ]
    assert all(float(right) > float(wanted) - 1.5 for _, right, wanted, _ in kinds)
    cost = re.search(r"^with floors: \d+% right, ([\d.]+) cents", text, re.M)
    assert cost is not None
    assert float(cost[1]) < 0.95


def test_workers_who_are_right_too_seldom_or_charge_too_much_get_few_labels() -> None:
    text = printed("crowd_workers.py")
    ratios = re.search(r"work: ([\d.]+) .*\n.*work: ([\d.]+)\n.*: ([\d.]+), from 29\d\d labels; 20 still out\n", text)
    assert ratios is not None
    accurate, cheapest, learned = map(float, ratios.groups())
    assert learned > max(accurate, cheapest)
    for kind in ("birds", "texts"):
        shares = {name: int(share) for name, share in re.findall(r"(\w+) (\d+)%", re.findall(f"{kind}: (.*)", text)[0])}
        assert shares["ann"] + shares["dot"] < shares["bob"]


def test_every_suite_gets_its_runner_and_a_verdict_costs_less_than_on_any_one_of_them() -> None:
    text = printed("ci_runners.py")
    *always, learned = map(float, re.findall(r": ([\d.]+) cents a verdict", text))
    assert len(always) == 3
    assert learned < 0.95 * min(always)
    chosen = dict(re.findall(r"^(\w+): (\w+) \d+%", text, re.M))
    assert chosen == {"lint": "small", "unit": "medium", "browser": "large"}


SPEED = {"zlib-1": 60, "zlib-6": 25, "zlib-9": 12, "bz2-1": 12, "bz2-9": 9, "lzma-0": 14, "lzma-3": 5}  # MB/s


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_is_said_of_compressors_is_contradicted_by_the_truth(
    seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With costs of a clock that goes the same everywhere: by size and speed, give or take 15 %."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compression

    def modelled(option: str, data: bytes) -> tuple[float, float]:
        saved = (len(data) - len(compression.OPTIONS[option](data))) / 1e6
        luck = zlib.crc32(data + option.encode()) % 1000 / 1000 - 0.5
        return saved, len(data) / 1e6 / SPEED[option] * (1.0 + 0.3 * luck)

    assert compression.main(120, modelled, seed) == []
    assert " 0 contradicted by the truth" in capsys.readouterr().out
