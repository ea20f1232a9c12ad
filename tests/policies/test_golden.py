"""Golden numbers: what every policy decides in one short run is what it has always decided; see golden.py.

If a test here fails and you meant no change, the change is a mistake. If you meant to change the default, make its
numbers anew (`python tests/policies/golden.py --write`) and say in the changelog what became better. Numbers of the
paper's policies and of the rivals are never made anew: what they compute is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from golden import TASKS, WORLDS, read, run, wanted

CASES = [(file, world, text) for file, worlds in wanted().items() for world in worlds for text in worlds[world]]
COMPILED = [
    ("default", "positive costs", "ratio-imed"),
    pytest.param("default", "features", "ratio-imed", marks=pytest.mark.slow),
    pytest.param("goals", "positive costs", "floors of kinds", marks=pytest.mark.slow),
    ("rivals", "positive costs", "dol-rm"),
]


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["choices"] == expected["choices"]
    assert (found["reward"], found["cost"]) == (expected["reward"], expected["cost"])
    assert (found["price"] is None) == (expected["price"] is None)
    if expected["price"] is not None:
        assert found["price"] == pytest.approx(expected["price"], rel=1e-12)
    for name in ("estimates", "judged"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(("file", "world", "text"), CASES)
def test_a_short_run_gives_the_golden_numbers(file: str, world: str, text: str) -> None:
    check(run(text, WORLDS[world]), read(file)[world][text])


@pytest.mark.parametrize(("file", "world", "text"), COMPILED)
def test_machine_code_gives_the_golden_numbers(file: str, world: str, text: str) -> None:
    check(run(text, WORLDS[world], "compiled"), read(file)[world][text])


def test_the_golden_files_hold_these_policies_and_no_others() -> None:
    for file, worlds in wanted().items():
        assert {world: list(policies) for world, policies in read(file).items()} == worlds
    assert all(len(record["choices"]) == TASKS for record in read("default")["positive costs"].values())
