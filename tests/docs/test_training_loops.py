"""The examples of training loops, run as a reader would."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import NET

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = (Path(__file__).parents[2] / "docs" / "training-loops.md").read_text(encoding="utf-8")


def printed(name: str, *code: str) -> str:
    words = code or (str(EXAMPLES / name),)
    done = subprocess.run(
        [sys.executable, *words], cwd=EXAMPLES, capture_output=True, text=True, timeout=NET, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def promised(name: str) -> str:
    words = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))) or ""
    return re.sub("^ {4}", "", words.partition("Prints:\n\n")[2] + "\n", flags=re.M)


def test_the_pruner_ends_trials_that_are_not_worth_it() -> None:
    assert printed("optuna_pruner.py") == promised("optuna_pruner.py")


@pytest.mark.slow
def test_classifiers_with_few_images_are_not_trained_for_long() -> None:
    assert printed("partial_fit.py") == promised("partial_fit.py")
    assert f"```console\n$ python examples/partial_fit.py\n{promised('partial_fit.py')}```" in PAGE


@pytest.mark.slow
def test_the_keras_callback_ends_fit() -> None:
    said = printed("keras_steps.py", "-c", "import keras_steps; keras_steps.main(2)")
    assert re.fullmatch(r"(training \d: [1-8] of 8 epochs\n){2}", said)
