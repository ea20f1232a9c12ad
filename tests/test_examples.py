"""The examples do what they say, as a reader would run them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def printed(name: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_small_instances_get_less_time_than_large_ones() -> None:
    text = printed("time_limits.py")
    assert text.startswith("150 searches, ")
    limits = {kind: float(limit) for kind, limit in re.findall(r"^(\w+): mostly ([\d.]+) s", text, re.M)}
    assert set(limits) == {"village", "town", "region"}
    assert limits["village"] <= limits["region"]


def test_the_dear_model_is_not_worth_a_proof_but_the_middle_one_is_worth_a_summary() -> None:
    assert printed("model_choice.py").splitlines()[1:] == [
        "look-up: mostly small (96% of 1464)",
        "summary: mostly medium (90% of 1216)",
        "proof: mostly small (82% of 320)",
    ]


def test_workers_who_are_right_too_seldom_or_charge_too_much_get_few_labels() -> None:
    text = printed("crowd_workers.py")
    assert text.startswith("2918 labels, 0.0887 right ones per cent, 20 still out\n")
    for kind in ("birds", "texts"):
        shares = {name: int(share) for name, share in re.findall(r"(\w+) (\d+)%", re.findall(f"{kind}: (.*)", text)[0])}
        assert shares["ann"] + shares["dot"] < shares["bob"]
