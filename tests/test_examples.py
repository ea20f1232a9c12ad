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
    found = re.findall(r"^(.+): mostly (\w+) \((\d+)% of \d+\)$", printed("model_choice.py"), re.M)
    assert [(kind, model) for kind, model, _ in found] == [
        ("look-up", "small"),
        ("summary", "medium"),
        ("proof", "small"),
    ]
    assert all(int(share) > 70 for _, _, share in found)


def test_workers_who_are_right_too_seldom_or_charge_too_much_get_few_labels() -> None:
    text = printed("crowd_workers.py")
    ratio = re.match(r"29\d\d labels, (0\.\d+) right ones per cent, 20 still out\n", text)
    assert ratio is not None
    assert float(ratio[1]) > 0.085
    for kind in ("birds", "texts"):
        shares = {name: int(share) for name, share in re.findall(r"(\w+) (\d+)%", re.findall(f"{kind}: (.*)", text)[0])}
        assert shares["ann"] + shares["dot"] < shares["bob"]
