"""How fast it is, as ratios measured side by side: python benchmarks/speed.py [--quick], under 3 minutes.

Contestants take turns round after round and each keeps its best time, so that a busy machine hurts all of them alike.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import new_processes
from pure_python import Table, Tasks, dol_rm, river_ucb
from table import Report, best_times, clocked, command_line, pieces
from worthwhile.optimum import Optimum, solve
from worthwhile.policies.base import known
from worthwhile.policies.dol_rm import DolRm
from worthwhile.policies.registry import DEFAULT, LIST, make
from worthwhile.problem import Problem, seven_kinds
from worthwhile.simulation.environments import Environment, synthetic
from worthwhile.simulation.loop import TOTALS, Block, engine_for, new_flight, truth_of
from worthwhile.simulation.progress import Progress
from worthwhile.simulation.runs import BLOCK, NO_DELAY, Delay, Job, Sweep, stages_of

TASKS = 100_000
PIECE = 4_000
TIMES_DOL_RM = {  # at most, per task: 1.5 to 2 times what was measured on a quiet machine
    DEFAULT: 25, "sample-rm": 2, "running-ratio-dol": 2, "plug-in-dol": 8, "solved-dol": 30, "gap-ucb": 1.6,
    "reward-ucb": 1.6, "ratio-ucb": 2, "omega-ucb": 3.5, "omega-star-ucb": 4, "m-ucb": 3,
    "reward-ts": 7, "ratio-ts": 9, "bts": 32, "b-greedy": 4, "plug-ts": 10, "linear-greedy": 5, "linear-ts": 11,
    "kind-greedy": 1.5, "fixed-option": 0.8, "random-option": 1.5, "oracle": 1.3, "optimum": 1.1,
}  # fmt: skip
STEP_SIZES = ("dol-rm", "dol-rm-anytime")
HERE = Path(__file__).parent


class Setting(NamedTuple):
    """A problem with its pre-drawn tasks, the same for every contestant."""

    problem: Problem
    environment: Environment
    best: Optimum
    blocks: list[Block]

    @property
    def tasks(self) -> int:
        return sum(len(block.kinds) for block in self.blocks)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.problem.kinds), len(self.problem.options)

    def policy(self, name: str) -> Any:
        chosen = f"{name},option={self.problem.options[0]}" if name == "fixed-option" else name
        return make(chosen, known(self.problem, self.tasks))


def setting(problem: Problem, seed: int, tasks: int = TASKS) -> Setting:
    """Draw the tasks of a problem."""
    environment, generator = synthetic(problem), np.random.default_rng([seed, 1])
    sizes = [min(BLOCK, tasks - start) for start in range(0, tasks, BLOCK)]
    blocks = [Block(*environment.world.draw(generator, size), NO_DELAY) for size in sizes]
    return Setting(problem, environment, solve(problem), blocks)


def even_problem(kinds: int, options: int, seed: int) -> Problem:
    """Kinds that arrive equally often, all with the same number of options, random means, noise N(0, 1)."""
    reward, cost = np.random.default_rng([seed, 5]).uniform(0.5, 3.0, (2, kinds, options))
    names = tuple(f"s{kind}" for kind in range(kinds)), tuple(f"a{option}" for option in range(options))
    return Problem(f"{kinds} kinds × {options} options", *names, np.full(kinds, 1.0 / kinds), reward, cost)


class Ours:
    """Our loop for one policy; the state is new in every run and set up off the clock."""

    def __init__(self, here: Setting, name: str, engine: str = "compiled", piece: int = BLOCK) -> None:
        self.here, self.policy, self.piece = here, here.policy(name), piece
        self.truth = truth_of(here.problem, here.best)
        self.engine = engine_for(self.policy, here.environment.world, engine, late=False)
        if engine == "compiled":
            self()

    def __call__(self) -> list[float]:
        self.state = self.policy.init(*self.here.shape)
        self.totals = np.zeros(len(TOTALS))
        return pieces(self.play(new_flight(*self.here.shape, 0)))

    def play(self, flight: Any) -> Iterator[None]:
        before = 0
        for block in self.here.blocks:
            fixed = self.policy, self.state, self.here.environment.world, self.truth, flight, self.totals
            for begin in range(0, len(block.kinds), self.piece):
                self.engine(*fixed, block, begin, min(begin + self.piece, len(block.kinds)), 1, before)
                yield
            before += len(block.kinds)


class InC:
    """The C loop for DOL-RM, on the same blocks."""

    def __init__(self, here: Setting, policy: DolRm, library: ctypes.CDLL) -> None:
        problem, self.blocks, self.play_block = here.problem, here.blocks, library.play
        self.price_min, self.shape = policy.price_min, here.shape
        self.policy = np.array(policy[:5], dtype=float).tobytes() + int(policy.anytime).to_bytes(8, sys.byteorder)
        self.options = np.argsort(~problem.offered, axis=1, kind="stable").astype(np.uint32)
        self.offers = problem.offered.sum(axis=1).astype(np.int64)
        noise = problem.reward_noise.deviation(problem.reward), problem.cost_noise.deviation(problem.cost)
        self.truth = np.stack([problem.reward, problem.cost, here.best.gaps, *noise], axis=-1)

    def __call__(self) -> float:
        self.arms, self.progress = np.zeros((*self.shape, 3)), np.array([0.0, self.price_min])
        self.totals = np.zeros(len(TOTALS))
        return clocked(self.play)

    def play(self) -> None:
        tables = [address(array) for array in (self.options, self.offers, self.truth, self.arms, self.progress)]
        for kinds, latent, _ in self.blocks:
            tasks = address(kinds), address(latent), ctypes.c_int64(len(kinds))
            self.play_block(self.policy, ctypes.c_int64(self.shape[1]), *tables, *tasks, address(self.totals))


def address(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    """Where an array's numbers are, for C."""
    return ctypes.c_void_p(array.ctypes.data)


def compile_c(folder: Path, *flags: str) -> ctypes.CDLL:
    """dol_rm.c as a library, with all the optimisation that the C compiler has."""
    target = folder / f"dol_rm{len(flags)}.so"
    options = ["-O3", "-march=native", *flags, "-shared", "-fPIC"]
    subprocess.run(["cc", *options, str(HERE / "dol_rm.c"), "-o", str(target), "-lm"], check=True)
    return ctypes.CDLL(str(target))


def against_c(report: Report, settings: Sequence[Setting], rounds: int) -> None:
    """DOL-RM against C; compiled without fused multiply-add, C must give the same bits as we do."""
    with tempfile.TemporaryDirectory() as folder:
        fast, exact = compile_c(Path(folder)), compile_c(Path(folder), "-ffp-contract=off")
        for here in settings:
            for name in STEP_SIZES:
                ours = Ours(here, name)
                twin = InC(here, ours.policy, exact)
                twin()
                same = twin.totals.tobytes() == ours.totals.tobytes() and twin.progress[1] == ours.state.price[0]
                report.judge(f"{here.problem.name}: {name}, C gives the same bits", str(same), "True", same)
                best = best_times({"ours": ours, "C": InC(here, ours.policy, fast)}, 20 * rounds)
                report.note(f"{here.problem.name}: {name}, per task", f"{1e9 * best['ours'] / here.tasks:.1f} ns")
                report.note(f"{here.problem.name}: {name} in C, per task", f"{1e9 * best['C'] / here.tasks:.1f} ns")
                report.at_most(f"{here.problem.name}: {name} / C", best["ours"] / best["C"], 1.5, "×")


def against_the_interpreter(report: Report, here: Setting, rounds: int, seed: int) -> None:
    """DOL-RM against plain Python, river and our own interpreted engine."""
    tables = [np.where(here.problem.offered, each, 0.0).tolist() for each in (here.problem.reward, here.problem.cost)]
    table = Table([np.flatnonzero(row).tolist() for row in here.problem.offered], *tables, here.best.gaps.tolist())
    kinds, latent = (np.concatenate([block[column] for block in here.blocks]) for column in (0, 1))
    starts = range(0, TASKS, PIECE)
    tasks = [Tasks(kinds[at : at + PIECE].tolist(), *latent[at : at + PIECE].T.tolist()) for at in starts]
    ours, few = Ours(here, "dol-rm"), len(tasks) // 4
    rivals: dict[str, Callable[[], float | list[float]]] = {
        "dol-rm": lambda: best_times({"dol-rm": ours}, 10)["dol-rm"],
        "hand-tuned pure Python": lambda: pieces(dol_rm(ours.policy, table, tasks)),
        "river's UCB": lambda: pieces(river_ucb(table, tasks[:few], seed)),
        "the same in pure Python": Ours(setting(here.problem, seed, few * PIECE), "dol-rm", "python", PIECE),
    }
    best = best_times(rivals, 2 * rounds)
    played = {"dol-rm": TASKS, "hand-tuned pure Python": TASKS}
    per_task = {name: seconds / played.get(name, few * PIECE) for name, seconds in best.items()}
    for name, limit in (("the same in pure Python", 200), ("hand-tuned pure Python", None), ("river's UCB", 80)):
        report.note(f"{here.problem.name}: {name}, per task", f"{1e6 * per_task[name]:.2f} µs")
        faster = per_task[name] / per_task["dol-rm"]
        if limit is None:  # lists and local variables only: the C loop is not 100 times as fast either
            report.note(f"{here.problem.name}: {name} / dol-rm", f"{faster:.3g} ×")
        else:
            report.at_least(f"{here.problem.name}: {name} / dol-rm", faster, limit, "×")


def policies_against_dol_rm(report: Report, here: Setting, rounds: int) -> None:
    """Every other policy against DOL-RM."""
    base = Ours(here, "dol-rm")
    for name in LIST:
        if name not in STEP_SIZES:
            best = best_times({"base": base, name: Ours(here, name, piece=PIECE)}, 3 * rounds)
            report.at_most(f"{here.problem.name}: {name} / dol-rm", best[name] / best["base"], TIMES_DOL_RM[name], "×")


def scale(report: Report, rounds: int, seed: int) -> None:
    """Many kinds, many options; whole runs of the simulator (Job.run: tasks drawn and played), set-up off the clock."""
    for name, limit in (("dol-rm", 7), (DEFAULT, 5)):
        runs = {kinds: whole_run(even_problem(kinds, 3, seed), name, 1_000_000) for kinds in (10, 100_000)}
        best = best_times(runs, rounds)
        report.at_most(f"{name}: 100 000 kinds / 10 kinds", best[100_000] / best[10], limit, "×")
    few = TASKS // 5
    seconds = best_times({"one kind": whole_run(even_problem(1, 1000, seed), "dol-rm", few)}, 10 * rounds)["one kind"]
    report.at_most("dol-rm: 1 000 options, per task", 1e6 * seconds / few, 6, "µs")


def whole_run(problem: Problem, name: str, tasks: int) -> Callable[[], float]:
    """One run of the simulator, compiled beforehand."""
    policy = make(name, known(problem, tasks))
    sweep = Sweep(synthetic(problem), [policy], tasks, "compiled", np.array([tasks]), Delay(0, 0), 1)
    job = Job(sweep, stages_of(sweep.environment, tasks), Progress(tasks, False))
    job.run(0)
    return lambda: clocked(job.run, 0)


def main() -> int:
    """Measure everything; 1 if a limit was missed."""
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    chosen = parser.parse_args()
    rounds, seed = 1 if chosen.quick else 3, chosen.seed
    report = Report()
    settings = [setting(seven_kinds(), seed), setting(even_problem(5, 5, seed), seed)]
    against_c(report, settings, rounds)
    for here in settings:
        against_the_interpreter(report, here, rounds, seed)
        policies_against_dol_rm(report, here, rounds)
    scale(report, rounds, seed)
    new_processes.threads_against_processes(report, 3 * rounds, seed)
    new_processes.memory(report, seed)
    new_processes.starting(report, rounds, seed)
    new_processes.edits_are_noticed(report)
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
