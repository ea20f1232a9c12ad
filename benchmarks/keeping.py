"""Measurements kept between runs of the arena: rivals take most of the time, and stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from measuring import ARRAYS, Entrants, Measured, measure
from suites import Row
from worthwhile import Environment


class Key(NamedTuple):
    """What a measurement depends on, besides the policies."""

    row: str
    tasks: int
    runs: int
    seed: int


class Kept:
    """A file of measurements. Whoever changes a rival, or a row, deletes it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.measured: dict[Key, Measured] = {}
        if path and path.exists():
            with np.load(path) as file:
                for number, (key, new, policies, runs) in enumerate(json.loads(str(file["index"]))):
                    values = (file[f"{name} {number}"] for name in ARRAYS)
                    self.measured[Key(*key)] = Measured(key[0], new, key[1], tuple(policies), runs, *values)

    def measure(self, row: Row, everybody: Entrants, ours: str, key: Key) -> Measured:
        """Measure ours and all that is not known yet, and keep the others; the answer has only who was asked for."""
        known = self.measured.get(key)
        names = known.policies if known else ()
        wanted = set[str]()

        def missing(row: Row, world: Environment) -> dict[str, str]:
            asked = everybody(row, world)
            wanted.update(asked)
            return {label: policy for label, policy in asked.items() if label == ours or label not in names}

        found = measure(row, missing, key.tasks, key.runs, key.seed)
        found = known.join(found) if known else found
        self.measured[key] = found.only({*found.policies} - {ours})
        self.save()
        return found.only(wanted)

    def save(self) -> None:
        if self.path is None:
            return
        index = [(key, one.new, one.policies, one.runs) for key, one in self.measured.items()]
        measured = enumerate(self.measured.values())
        arrays = {f"{name} {number}": getattr(one, name) for number, one in measured for name in ARRAYS}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new.npz")
        np.savez(beside, index=np.array(json.dumps(index)), **arrays)
        beside.replace(self.path)
