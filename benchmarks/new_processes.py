"""What needs fresh processes: two threads against two processes, peak memory, imports, the cache of compiled code."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from table import Report, best_times, clocked
from worthwhile.policies.registry import DEFAULT

WORKER = """
import sys
from worthwhile import seven_kinds, simulate
runs, threads, seed = map(int, sys.argv[1:])
def work(tasks):
    simulate(seven_kinds(), ["dol-rm"], tasks=tasks, runs=runs, seed=seed, threads=threads, progress=False)
work(1000)
print("ready", flush=True)
for _ in sys.stdin:
    work(1_000_000)
    print("done", flush=True)
"""


class Workers:
    """Processes that are warmed up, wait for a signal, and do the same work every time."""

    def __init__(self, processes: int, runs: int, threads: int, seed: int) -> None:
        command = [sys.executable, "-c", WORKER, str(runs), str(threads), str(seed)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.processes = [subprocess.Popen(command, **pipes, text=True, bufsize=1) for _ in range(processes)]
        self.hear("ready")

    def __call__(self) -> float:
        return clocked(self.work)

    def work(self) -> None:
        for process in self.processes:
            print("go", file=process.stdin, flush=True)
        self.hear("done")

    def hear(self, word: str) -> None:
        for process in self.processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != word:
                raise RuntimeError(f"worker {process.pid} did not say {word!r}; its error is above")

    def close(self) -> None:
        for process in self.processes:
            process.communicate()


def threads_against_processes(report: Report, rounds: int, seed: int) -> None:
    """The throughput of two threads in one process over that of two processes."""
    contestants = {"threads": Workers(1, 8, 2, seed), "processes": Workers(2, 4, 1, seed)}
    best = best_times(contestants, rounds)
    for workers in contestants.values():
        workers.close()
    report.at_least("throughput of 2 threads / 2 processes", best["processes"] / best["threads"], 0.85, "×")


def in_new_process(code: str, *arguments: str, cache: str = "", path: str = "") -> str:
    """What a fresh Python prints last."""
    command = [sys.executable, "-c", code, *arguments]
    given = {"WORTHWHILE_CACHE": cache, "PYTHONPATH": path and os.pathsep.join([path, *sys.path[1:]])}
    changed = {name: value for name, value in given.items() if value}
    done = subprocess.run(command, env={**os.environ, **changed}, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()[-1] if done.stdout else ""


SIMULATE = """
import sys
from worthwhile import seven_kinds, simulate
simulate(seven_kinds(), [sys.argv[1]], tasks=int(sys.argv[2]), runs=1, seed=int(sys.argv[3]), progress=False)
"""
PEAK = """
import resource
from pathlib import Path
status = Path("/proc/self/status")
if status.exists():  # getrusage counts the parent's memory there
    kilobytes = int(status.read_text().split("VmHWM:")[1].split()[0])
    print(1024 * kilobytes)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
IMPORT = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
USED = "from worthwhile import Scheduler"  # `import worthwhile` alone loads next to nothing


def memory(report: Report, seed: int) -> None:
    """The most memory that a process takes for a hundred million tasks."""
    peak = int(in_new_process(SIMULATE + PEAK, "dol-rm", str(10**8), str(seed)))
    report.at_most("peak memory for 10⁸ simulated tasks", peak / 1e6, 300, "MB")


def starting(report: Report, rounds: int, seed: int) -> None:
    """Imports, the first compiled run, and the runs of later processes."""
    imports = {line: import_time(line) for line in ("import numpy", "import worthwhile", USED)}
    best = best_times(imports, 3 * rounds)
    report.at_most("import worthwhile / import numpy", best["import worthwhile"] / best["import numpy"], 2, "×")
    report.at_most(f"{USED} / import numpy", best[USED] / best["import numpy"], 3, "×")
    loaded = in_new_process("import sys, worthwhile; print('numba' in sys.modules)")
    report.judge("import worthwhile loads numba", loaded, "False", loaded == "False")
    for name, first in (("dol-rm", 4), (DEFAULT, 5)):
        first_and_later(report, name, first, rounds, seed)


def import_time(line: str) -> Callable[[], float]:
    """Imports something in a fresh process."""
    return lambda: float(in_new_process(IMPORT.format(line)))


def first_and_later(report: Report, name: str, first: float, rounds: int, seed: int) -> None:
    """Whole processes with an empty cache, then with what the first one left there; CPU time tells a busy machine."""
    with tempfile.TemporaryDirectory() as cache:

        def run() -> float:
            return clocked(lambda: in_new_process(SIMULATE, name, "1000", str(seed), cache=cache))

        for which, limit, times in (("first process", first, 1), ("later processes", 1.5, 2 * rounds)):
            before = cpu_of_children()
            report.at_most(f"{name}: {which}, wall time", best_times({which: run}, times)[which], limit, "s")
            report.note(f"{name}: {which}, CPU time", f"{(cpu_of_children() - before) / times:.3g} s")


def cpu_of_children() -> float:
    """CPU seconds of all finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


POLICY = """
import math
from typing import NamedTuple
import numpy as np
from worthwhile.decision import Decision
from patience_rule import enough

class State(NamedTuple):
    tasks: np.ndarray

class Alternate(NamedTuple):
    def init(self, kinds, options):
        return State(np.zeros(1))
    def choose(self, state, kind, options, pending, rng):
        place = 1 if enough(state.tasks[0]) and len(options) > 1 else 0
        return Decision(options[place], 0.0, 0.0)
    def learn(self, state, kind, made, reward, cost, rng):
        state.tasks[0] += 1.0
"""
RULE = """
LIMIT = {}.0
def enough(tasks):
    return tasks > LIMIT
"""
COMPARE = """
from alternate import Alternate
from worthwhile import seven_kinds, simulate
def regret(engine):
    found = simulate(seven_kinds(), {"mine": Alternate()}, tasks=500, runs=1, engine=engine, progress=False)
    return found.mean("regret")["mine"]
print(regret("compiled"), regret("compiled") == regret("python"))
"""


def edits_are_noticed(report: Report) -> None:
    """An edited constant in a module that a policy imports reaches the compiled run of the next process."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "alternate.py").write_text(POLICY)
        seen = []
        for limit in (100, 300):
            Path(folder, "patience_rule.py").write_text(RULE.format(limit))
            seen.append(in_new_process(COMPARE, cache=f"{folder}/cache", path=folder))
        kept = seen[0] != seen[1] and all(line.endswith("True") for line in seen)
        report.judge("edits in imported files are noticed by the cache", str(kept), "True", kept)
