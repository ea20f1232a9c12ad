"""`make demo`, its own command with fewer tasks: watched on its dashboard, killed, gone on with."""

from __future__ import annotations

import csv
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from waiting import NET, wait_until
from worthwhile import Scheduler
from worthwhile.cli.main import main
from worthwhile.demo.comparison import compare
from worthwhile.demo.dashboard import HOST, PORTS, free_port

ROOT = Path(__file__).parents[2]


def demo(tasks: int) -> list[str]:
    """What `make demo` runs, with another number of tasks."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [words] = re.findall(r"^demo:.*\n\t\$\(BIN\)/worthwhile (train .*)$", makefile, re.M)
    assert "--tasks 600" in words
    return [*words.replace("--tasks 600", f"--tasks {tasks}").split()]


def start(words: list[str], folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "worthwhile", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


@contextmanager
def started(words: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """It does not outlive a test that fails."""
    process = start(words, folder)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def reports(address: str) -> int:
    return int(httpx.get(f"{address}v1/schedulers/default/summary", timeout=NET).json()["reports"])


def page_of_the_stopped(process: subprocess.Popen[str], address: str) -> str:
    """The dashboard, which goes on; 503 if the process was stopped while it had the store's lock."""
    process.send_signal(signal.SIGSTOP)
    page = httpx.get(address, timeout=NET, follow_redirects=True).text
    process.send_signal(signal.SIGCONT)
    return page


def is_open(address: str) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((HOST, int(address.rpartition(":")[2].strip("/")))) == 0


@pytest.mark.slow
def test_the_demo_shows_its_dashboard_is_killed_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(demo(40), tmp_path) as process:
        address = re.fullmatch(r"dashboard: (http://127\.0\.0\.1:\d+/) \(while this runs\)\n", first_line(process))
        assert address is not None
        wait_until(lambda: reports(address[1]) >= 5, "the first reports")
        wait_until(lambda: "odd digits" in page_of_the_stopped(process, address[1]), "the dashboard")
        process.send_signal(signal.SIGSTOP)  # so that it is not done before it is killed
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        assert len(family) >= 3  # two processes that train, or one for each core, and the dashboard
    assert psutil.wait_procs(family, NET)[1] == []
    assert not is_open(address[1])

    store = tmp_path / "results" / "demo" / "tasks.db"
    with Scheduler(str(store), create=False) as scheduler:
        before = scheduler.summary().reports
    assert 5 <= before < 40
    monkeypatch.chdir(tmp_path)
    assert main([*demo(40), "--json"]) == 0
    answer, seen = capsys.readouterr()
    assert re.match(rf"dashboard: http.*\n{before} of 40 tasks ", seen)
    facts = json.loads(answer)
    assert (facts["reported"], facts["skipped"], facts["failed"]) == (40 - before, before, 0)

    with open(tmp_path / "results/demo/outcomes.csv", newline="", encoding="utf-8") as file:
        own = [row["item_id"] for row in csv.DictReader(file) if row["observed"] == "False"]
    assert len(own) == len(set(own)) == 40  # no task counts twice
    with Scheduler(str(store), create=False) as scheduler:
        assert facts["achieved"] == pytest.approx(scheduler.summary().ratio)
        assert len(scheduler.latest(100)) == 40
    compared = compare(tmp_path / "results/demo/outcomes.csv")
    assert facts["achieved"] == compared.so_far[-1]
    assert max(facts["rules"], key=facts["rules"].__getitem__) == "optimum θ*"
    assert set(facts["rules"]) >= {"always shortest", "always longest", "greedy per kind", "at random"}
    assert [Path(file).name for file in facts["saved"]] == ["outcomes.csv", "report.txt", "figure.png"]
    assert all((tmp_path / file).stat().st_size > 0 for file in facts["saved"])
    table = str(tmp_path / "results/demo/outcomes.csv")
    assert main(["replay", table, "--tasks", "200", "--runs", "2", "--policy", "ratio-imed"]) == 0
    assert main(["train", "--data", "no-such"]) == 2
    assert "--data no-such: no such folder" in capsys.readouterr().err


@pytest.mark.slow
def test_a_second_run_waits_for_the_first_and_goes_on_when_that_is_killed(tmp_path: Path) -> None:
    first = start(demo(5000), tmp_path)  # it will not end before it is killed
    assert first_line(first).startswith("dashboard: ")
    second = start(demo(40), tmp_path)
    assert first_line(second) == "another run is at work in results/demo; this one waits for it, then goes on\n"
    first.kill()
    first.communicate()
    text, _ = second.communicate(timeout=NET)
    assert second.returncode == 0
    counts = re.search(r"^(\d+) tasks? done, 0 of them failed, (\d+) were done before", text, re.M)
    assert counts is not None
    assert int(counts[1]) + int(counts[2]) == 40


@pytest.mark.slow
def test_ctrl_c_lets_tasks_end_and_the_dashboard_with_them(tmp_path: Path) -> None:
    process = start(demo(500), tmp_path)
    address = first_line(process).split()[1]
    wait_until(lambda: reports(address) >= 2, "the first reports")
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=NET)
    assert process.returncode == 130
    assert "(interrupted: run it again to go on)" in text
    assert not is_open(address)


@pytest.mark.slow
def test_without_a_dashboard_the_tasks_run_all_the_same(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        process = start([*demo(2), "--port", str(port)], tmp_path)
        text, _ = process.communicate(timeout=NET)
    assert process.returncode == 0
    assert text.startswith(f"no dashboard: cannot listen on 127.0.0.1, port {port}: ")
    assert "2 tasks done, 0 of them failed" in text

    (tmp_path / "uvicorn.py").write_text("raise ImportError('no module named uvicorn')\n", encoding="utf-8")
    process = start(demo(3), tmp_path)  # the current folder comes first
    text, _ = process.communicate(timeout=NET)
    assert process.returncode == 0
    assert re.match(r"no dashboard: .*pip install 'worthwhile\[service\]'", text)
    assert "1 task done, 0 of them failed, 2 were done before" in text


def test_another_port_is_taken_if_the_usual_one_is_in_use() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port([port]) == 0  # any
        assert free_port([port, *PORTS]) in {0, *PORTS}
    assert free_port([port]) == port
