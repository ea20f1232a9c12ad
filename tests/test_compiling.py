"""The compiled engine: what it refuses, and a cache on disk that notices edits and survives to the next process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from worthwhile import compiling, seven_kinds, simulate
from worthwhile.decision import Decision
from worthwhile.errors import CannotCompile
from worthwhile.live import engines
from worthwhile.live.compiled_state import Holder
from worthwhile.live.totals import new_totals
from worthwhile.policies.imed import RatioImed
from worthwhile.rng import Rng
from worthwhile.simulation import loop
from worthwhile.state import Floats, Indices

POLICY = """
from typing import NamedTuple
import numpy as np
from worthwhile.decision import Decision
from patience import enough
import thresholds

class State(NamedTuple):
    tasks: np.ndarray

class Alternate(NamedTuple):
    def init(self, kinds, options):
        return State(np.zeros(1))
    def choose(self, state, kind, options, pending, rng):
        late = enough(state.tasks[0] + thresholds.SHIFT + thresholds.TABLE[0] + thresholds.jitted())
        place = 1 if late and len(options) > 1 else 0
        return Decision(options[place], 0.0, 0.0)
    def learn(self, state, kind, made, reward, cost, rng):
        state.tasks[0] += 1.0
"""
PATIENCE = """
from thresholds import LIMIT
def enough(tasks):
    return tasks > LIMIT * FACTOR + extra()
FACTOR = 1.0
def extra():
    return 0.0
"""
THRESHOLDS = """
import numpy as np
from numba import njit
LIMIT = 100.0
SHIFT = 0.0
TABLE = np.array([0.0, 1.0])
@njit
def jitted():
    return 0.0
"""
RUN = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
from worthwhile import seven_kinds, simulate
from alternate import Alternate
def regret(engine):
    results = simulate(seven_kinds(), {"mine": Alternate()}, tasks=500, runs=1, engine=engine, progress=False)
    return float(results.mean("regret")["mine"])
print(regret("compiled"), regret("python"))
"""


def run(folder: Path, cache: Path) -> tuple[float, float, str]:
    """Regret of the compiled and of the interpreted policy in a fresh process, and what it logged."""
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    surroundings = {**os.environ, "PYTHONPATH": path, "WORTHWHILE_CACHE": str(cache)}
    surroundings["PYTHONDONTWRITEBYTECODE"] = (
        "1"  # an edit within the same second would be hidden by Python's own cache
    )
    done = subprocess.run([sys.executable, "-c", RUN], env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled, interpreted = map(float, done.stdout.split())
    return compiled, interpreted, done.stderr


def machine_code_files(cache: Path) -> dict[Path, int]:
    """The files of compiled code and when each was written."""
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A policy that uses functions, constants, an array and machine code of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "alternate.py").write_text(POLICY)
    (folder / "patience.py").write_text(PATIENCE)
    (folder / "thresholds.py").write_text(THRESHOLDS)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.slow
def test_an_edit_in_any_file_that_a_policy_uses_is_noticed(project: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    seen = [run(project, cache)]
    for file, old, new in [
        ("thresholds.py", "LIMIT = 100.0", "LIMIT = 200.0"),
        ("thresholds.py", "SHIFT = 0.0", "SHIFT = -20.0"),
        ("thresholds.py", "[0.0, 1.0]", "[-20.0, 1.0]"),
        ("thresholds.py", "return 0.0", "return -20.0"),
        ("patience.py", "FACTOR = 1.0", "FACTOR = 1.5"),
        ("patience.py", "return 0.0", "return 50.0"),
        ("alternate.py", "+= 1.0", "+= 0.8"),
    ]:
        edit(project / file, old, new)
        seen.append(run(project, cache))
    assert all(compiled == interpreted for compiled, interpreted, _ in seen)
    assert len({compiled for compiled, _, _ in seen}) == len(seen)


@pytest.mark.slow
def test_compiled_code_survives_to_the_next_process(project: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run(project, cache)
    written = machine_code_files(cache)
    second = run(project, cache)
    assert any(path.suffix == ".nbc" for path in written)
    assert machine_code_files(cache) == written
    assert first[0] == second[0] == second[1]


@pytest.mark.slow
def test_moving_code_within_a_file_compiles_nothing_anew(project: Path, tmp_path: Path) -> None:
    run(project, tmp_path / "cache")
    folders = set((tmp_path / "cache").iterdir())
    (project / "patience.py").write_text("# a comment\n\n" + (project / "patience.py").read_text())
    run(project, tmp_path / "cache")
    assert set((tmp_path / "cache").iterdir()) == folders


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_written_only_loses_the_cache(project: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("in the way")
    compiled, interpreted, logged = run(project, blocked)
    assert compiled == interpreted
    assert "no cache of compiled code" in logged


def test_importing_worthwhile_does_not_load_numba() -> None:
    code = "import sys, worthwhile; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class State(NamedTuple):
    tasks: Floats


class First(NamedTuple):
    """Takes the first option; the tests below break its methods."""

    def init(self, kinds: int, options: int) -> State:
        return State(np.zeros(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return Decision(options[0], 0.0, 0.0)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 0.0)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


def with_choose(choose: Any) -> First:
    """The policy above with another `choose`."""
    changed: First = type("Changed", (First,), {"choose": choose})()
    return changed


def play(policy: First, engine: str = "compiled") -> float:
    results = simulate(seven_kinds(), {"mine": policy}, tasks=50, runs=1, engine=engine, progress=False)
    return float(results.mean("reward")["mine"])


def closure_over(place: int) -> Any:
    return lambda self, state, kind, options, pending, rng: Decision(options[place], 0.0, 0.0)


def half(number: float) -> float:
    return number if number < 1.0 else half(number / 2.0)


def choose_by_halves(self: First, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
    return Decision(options[0], half(8.0), 0.0)


def choose_from_a_dictionary(self: First, state: State, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
    return {True: Decision(options[0], 0.0, 0.0), False: "nothing"}[True]  # type: ignore[return-value]


def ones(state: State, count: int) -> tuple[Floats, Floats]:
    return state.tasks[:1], np.ones(count)


def choose_with_arrays(self: First, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
    tasks, some = ones(state, len(options))
    return Decision(options[int(tasks[0] * some[0]) % len(options)], 0.0, 0.0)


def first_row(state: State) -> Floats:
    return state.tasks[:1]


def choose_from_a_view(self: First, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
    return Decision(options[int(first_row(state)[0]) % len(options)], 0.0, 0.0)


@numba.njit
def last(options: Any) -> Any:
    return options[-1:][0]


def choose_the_last(self: First, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
    return Decision(last(options), 0.0, 0.0)


@pytest.mark.parametrize("choose", [choose_with_arrays, choose_from_a_view, choose_the_last])
def test_a_policy_that_makes_arrays_compiles_too_and_counts_who_holds_them(choose: Any) -> None:
    assert play(with_choose(choose)) == play(with_choose(choose), "python") != play(First())


def test_a_plain_policy_does_not_count_who_holds_its_arrays() -> None:
    def counts(choose: Any) -> bool:
        code = compiling.machine_code(engines.choose_one, {"choose": choose})
        code.compile(engines.types_of(Holder(First(), State(np.zeros(1)), new_totals(1, 1)), *arguments))
        return code.code is not code.uncounted

    arguments = 0, np.zeros(1, np.uint32), np.zeros(1, np.uint32), 0, 0
    assert not counts(First.choose)
    assert counts(choose_with_arrays)
    assert counts(choose_the_last)


def test_the_default_never_counts_who_holds_its_arrays() -> None:
    """It would still be right if it did, but several times as slow, and nobody would be told."""
    engines.Compiled(RatioImed(), 7)
    simulate(seven_kinds(), [RatioImed()], tasks=10, runs=1, engine="compiled", progress=False)
    made = [code for code in compiling.compiled.values() if code.replace.get("choose") is RatioImed.choose]
    live = {engines.choose_one, engines.judge_one, engines.learn_one, engines.observe_one}
    assert live | {loop.play} <= {code.function for code in made}
    assert all(code.code is code.uncounted for code in made)


def test_the_unbroken_policy_compiles() -> None:
    assert play(First()) == play(First(), "python")


def test_a_closure_cannot_be_compiled_and_says_what_still_works() -> None:
    with pytest.raises(CannotCompile, match=r"not a plain module-level function.*engine='python'"):
        play(with_choose(closure_over(0)))
    assert play(with_choose(closure_over(0)), "python") == play(First())


def test_a_function_that_calls_itself_raises_our_error_and_runs_interpreted() -> None:
    with pytest.raises(CannotCompile, match="numba cannot compile Changed"):
        play(with_choose(choose_by_halves))
    assert play(with_choose(choose_by_halves), "python") == play(First())


def test_what_numba_cannot_type_raises_our_error() -> None:
    with pytest.raises(CannotCompile, match=r"numba cannot compile Changed in .*engine='python'"):
        play(with_choose(choose_from_a_dictionary))


def test_compiling_leaves_the_functions_as_they_were() -> None:
    before = First.choose, First.choose.__globals__["Decision"], compiling.plain(First.choose).__code__
    play(First())
    assert (First.choose, First.choose.__globals__["Decision"], First.choose.__code__) == before


def test_another_loop_takes_the_policys_methods_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORTHWHILE_CACHE", str(tmp_path))
    monkeypatch.setattr(compiling, "compiled", {})
    problem = seven_kinds()
    methods = set()
    for delay in (0, 3):
        simulate(problem, ["kind-greedy"], tasks=100, runs=1, delay=delay, engine="compiled", progress=False)
        methods = {path.name for path in tmp_path.rglob("*.nbc") if ".choose-" in path.name or ".learn-" in path.name}
        assert len(methods) == 2  # each once, whatever calls it
    assert len(list(tmp_path.rglob("loop.play-*.nbc"))) == 2
