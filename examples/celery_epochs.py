"""How many epochs? Chosen when a Celery task is sent, reported by the worker that has run it.

Needs `pip install 'worthwhile[celery]'`. The broker is a folder, the scheduler a file: no server, no keys.

Prints:

    40 tasks, 40 reported, 0 failed
    weather: mostly 5 epochs
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from celery import Celery

from worthwhile import Scheduler
from worthwhile.integrations.celery import Decided

FOLDER = Path(os.environ.get("EPOCHS_FOLDER") or tempfile.mkdtemp(prefix="epochs-"))
QUALITY = {1: 0.3, 5: 0.9, 10: 0.92}  # nobody tells the scheduler

app = Celery("celery_epochs", broker="filesystem://", backend=f"file://{FOLDER}")
folders = {f"data_folder_{end}": str(FOLDER / "queue") for end in ("in", "out")}
folders["control_folder"] = str(FOLDER / "control")
app.conf.update(broker_transport_options=folders | {"polling_interval": 0.02})


def open_scheduler() -> Scheduler:
    return Scheduler(FOLDER / "tasks.db", seed=1)


@app.task(base=Decided, options=[1, 5, 10], scheduler=open_scheduler, kind="weather", usual=5)
def train(seed: int, option: int) -> tuple[float, float]:
    """What it brought and what it cost; a number alone is the reward, and the cost the seconds that it took."""
    return QUALITY[option], 1.0 + 0.2 * option


def main(count: int = 40) -> None:
    (FOLDER / "queue").mkdir(exist_ok=True)
    (FOLDER / "control").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "celery", "-A", "celery_epochs", "worker", "--concurrency", "2"]
    environment = os.environ | {"EPOCHS_FOLDER": str(FOLDER)}
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    worker = subprocess.Popen(command, cwd=Path(__file__).parent, env=environment, **output)
    try:
        for seed in range(count):
            train.delay(seed).get(timeout=300, interval=0.02)
    finally:
        worker.terminate()
        worker.wait()
    with open_scheduler() as scheduler:
        summary = scheduler.summary()
    print(f"{summary.tasks} tasks, {summary.reports} reported, {summary.failed} failed")
    for kind in summary.kinds:
        print(f"{kind.kind}: mostly {max(kind.options, key=lambda option: option.pulls).option} epochs")


if __name__ == "__main__":
    main()
