"""Every call to the disk, every message over the network may fail: benchmarks/faults.py tries 10 000 of each."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from fault_points import Faults, network_faults, on_disk, plans

POINTS = int(os.environ.get("FAULT_POINTS", "40"))  # `make soak`: 1000


@pytest.mark.slow
def test_a_disk_that_fails_at_any_call_loses_nothing(tmp_path: Path) -> None:
    undisturbed = Faults({})
    (tmp_path / "first").mkdir()
    on_disk(tmp_path / "first", undisturbed)
    assert undisturbed.calls > 100
    spoiled = 0
    for number, plan in enumerate(plans(undisturbed.calls, 2 * POINTS, random.Random(3))):
        folder = tmp_path / str(number)
        folder.mkdir()
        spoiled += bool(on_disk(folder, Faults(plan)).errors)
    assert spoiled > POINTS // 4


@pytest.mark.slow
def test_a_network_that_fails_at_any_message_loses_nothing(postgres: str) -> None:
    with network_faults(postgres) as strike:
        undisturbed = Faults({})
        strike("undisturbed", undisturbed)
        assert undisturbed.calls > 50
        spoiled = 0
        for number, plan in enumerate(plans(undisturbed.calls, POINTS, random.Random(4))):
            spoiled += bool(strike(f"run {number}", Faults(plan)).errors)
    assert spoiled > POINTS // 4
