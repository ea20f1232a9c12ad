"""Tasks and sweeps on clusters that are really started, with a worker that is really killed."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import work_tasks
from waiting import NET, wait_until
from worthwhile import Scheduler, simulate, two_kinds, work
from worthwhile.errors import BadParameter
from worthwhile.execution.clusters import executor_on

DASK = pytest.param("dask", marks=pytest.mark.slow)
RAY = pytest.param("ray", marks=pytest.mark.long)


@pytest.mark.parametrize("system", [DASK, RAY])
def test_a_cluster_that_loses_a_worker_does_every_task_and_reports_it_once(
    system: str, sqlite: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "lines")
    with Scheduler(sqlite) as scheduler, executor_on(system, slots=2) as executor:
        assert executor.slots == 2  # type: ignore[attr-defined]
        seen: list[Any] = []

        def after(finished: Any) -> None:
            seen.append(finished)
            if len(seen) == 10:
                os.kill(victim, signal.SIGKILL)
                Path(f"{file}.go").touch()

        victim = executor.submit(os.getpid).result()
        done = work(scheduler, work_tasks.stream(file, 60), work_tasks.written_down, executor=executor, after=after)
        assert (done.reported, done.failed) == (60, 0)
        assert (scheduler.summary().tasks, scheduler.summary().reports, scheduler.summary().running) == (60, 60, 0)
        assert scheduler.rebuild()
    assert set(Path(file).read_text().split()) == {str(number) for number in range(60)}
    assert not work_tasks.alive(victim)


def ray_head(port: int, folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A Ray cluster of one node, once it can be reached."""
    program = "from ray.scripts.scripts import main; main()"
    options = f"--head --block --port={port} --node-ip-address=127.0.0.1 --num-cpus=2 --include-dashboard=false"
    log = folder / f"head {len(list(folder.glob('head*')))}"
    command = [
        sys.executable,
        "-c",
        program,
        "start",
        *options.split(),
        f"--temp-dir={folder}",
        "--disable-usage-stats",
    ]
    with log.open("wb") as output:
        head = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    wait_until(lambda: "Ray runtime started" in log.read_text() or head.poll() is not None, "the cluster")
    assert head.poll() is None, log.read_text()
    return head


def kill_with_all_below(process: subprocess.Popen[bytes]) -> None:
    below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for each in below:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()


@pytest.mark.long
def test_a_ray_cluster_that_was_killed_and_started_again_loses_no_task(sqlite: str, tmp_path: Path) -> None:
    """Ray ends the program with the cluster; the same command goes on where it was."""
    file, tasks = tmp_path / "ran", tmp_path / "tasks.jsonl"
    lines = ({"kind": "x", "options": [1, 2], "payload": [str(file), number]} for number in range(60))
    tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    }
    words = ["work", "work_tasks:written_down", "--store", sqlite, "--tasks", str(tasks), "--json"]
    command = [sys.executable, "-m", "worthwhile", *words, "--on", "ray", "--address", f"127.0.0.1:{port}"]
    with tempfile.TemporaryDirectory(
        prefix="ray", ignore_cleanup_errors=True
    ) as folder:  # its sockets need short names
        head = ray_head(port, Path(folder), environment)
        first = subprocess.Popen(command, env=environment)
        wait_until(lambda: file.exists() and len(file.read_text().split()) == work_tasks.UNTIL_TOLD, "the first tasks")
        kill_with_all_below(head)
        assert first.wait(NET) != 0
        Path(f"{file}.go").touch()
        head = ray_head(port, Path(folder), environment)
        try:
            again = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=NET)
        finally:
            kill_with_all_below(head)
    done = json.loads(again.stdout)
    assert (done["reported"] + done["skipped"], done["failed"]) == (60, 0)
    assert set(file.read_text().split()) == {str(number) for number in range(60)}
    with Scheduler(sqlite) as scheduler:
        assert (scheduler.summary().tasks, scheduler.summary().reports, scheduler.summary().running) == (60, 60, 0)
        assert scheduler.summary().reward == 60.0
        assert scheduler.rebuild()


@pytest.mark.parametrize("system", ["local", DASK, RAY])
def test_a_sweep_spread_over_processes_gives_the_same_numbers(system: str) -> None:
    problem, policies = two_kinds(0.8), ["ratio-imed", "reward-ts", "dol-rm"]
    settings: dict[str, Any] = {"tasks": 300, "runs": 5, "seed": 3, "delay": (0, 5), "engine": "python"}
    here = simulate(problem, policies, **settings)
    with executor_on(system, slots=2) as executor:
        there = simulate(problem, policies, executor=executor, **settings)
    assert np.array_equal(here.runs, there.runs)
    for measure in ("reward", "cost", "regret"):
        assert np.array_equal(here.measure(measure), there.measure(measure))


def test_systems_that_do_not_exist_are_refused() -> None:
    with pytest.raises(BadParameter, match="did you mean 'dask'"), executor_on("dsk"):
        pass
    with pytest.raises(BadParameter, match="local processes have none"), executor_on("local", "tcp://x"):
        pass
