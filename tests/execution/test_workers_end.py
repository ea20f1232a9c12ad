"""Workers and all that they have started end, however that comes: nothing is left behind, and nothing answers late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import work_tasks
from waiting import NET, later_once, wait_until
from worthwhile import LocalExecutor
from worthwhile.errors import TimedOut, WorkerLost
from worthwhile.execution import executors

KILLS = int(os.environ.get("WORK_KILLS", "4"))  # 500 in `make soak`
PROGRAM = """
import sys, time, work_tasks
from worthwhile import LocalExecutor
if __name__ == "__main__":
    with LocalExecutor(1) as executor:
        executor.submit(work_tasks.{task}).result()
        time.sleep(3600)
"""


def nobody_is_left(pids: list[int]) -> None:
    wait_until(lambda: not any(map(work_tasks.alive, pids)), f"the end of {pids}")


def noted(note: Path) -> list[int]:
    return [int(word) for word in note.read_text().split()]


def test_a_task_that_forks_is_answered_by_its_worker_alone(tmp_path: Path) -> None:
    with LocalExecutor(1) as executor:
        futures = [executor.submit(work_tasks.fork_and_return, str(tmp_path), number) for number in range(30)]
        assert [future.result(NET) for future in futures] == list(range(30))


@pytest.mark.slow
@pytest.mark.parametrize("lasting", ["thread", "process"])
def test_an_executor_shuts_down_whatever_a_task_has_left_running(lasting: str) -> None:
    executor = LocalExecutor(1)
    pid = executor.submit(work_tasks.leave_thread, lasting).result(NET)
    closing = threading.Thread(target=executor.shutdown, daemon=True)
    closing.start()
    closing.join(NET)
    assert not closing.is_alive()
    assert not work_tasks.alive(pid)


def test_daemons_go_on_between_tasks_and_end_with_the_executor(tmp_path: Path) -> None:
    with LocalExecutor(2) as executor:
        pids = executor.submit(work_tasks.start_daemons, str(tmp_path / "note")).result(NET)
        assert executor.submit(pow, 2, 3).result(NET) == 8
        assert all(map(work_tasks.alive, pids))
    nobody_is_left(pids)


@pytest.mark.slow
def test_a_task_that_dies_or_hangs_takes_along_every_process_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung: list[Path] = []
    monkeypatch.setattr(executors, "time", later_once(lambda: hung and hung[-1].exists()))
    with LocalExecutor(1) as executor:
        for number in range(KILLS):
            note, how = tmp_path / f"note {number}", ("exit", "segfault", "killed", "hang")[number % 4]
            hung[:] = [note] if how == "hang" else []
            future = executor.submit_within(1000.0, work_tasks.end_with_daemons, str(note), how)
            if how == "killed":
                wait_until(note.exists, "the daemons")
                os.kill(noted(note)[-1], signal.SIGKILL)
            with pytest.raises(TimedOut if how == "hang" else WorkerLost) as raised:
                future.result(NET)
            assert how == "hang" or {"exit": "code 3", "segfault": "code -11", "killed": "code -9"}[how] in str(raised)
            nobody_is_left(noted(note))


@pytest.mark.slow
def test_a_killed_program_takes_along_every_process_of_its_tasks(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for number in range(KILLS):
        note = tmp_path / f"note {number}"
        # while a task runs, and while the worker has nothing to do
        task = f"{'end_with_daemons' if number % 2 else 'start_daemons'}, {str(note)!r}{', None' * (number % 2)}"
        program.write_text(PROGRAM.format(task=task))
        process = subprocess.Popen([sys.executable, program], env=environment)
        wait_until(note.exists, "the daemons")
        process.kill()
        process.wait()
        nobody_is_left(noted(note))
