"""Faces: the client speaks to a real service as if its scheduler were here, and gives up only when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import worthwhile
from service_process import ServiceProcess, store_at
from worthwhile import Client, Scheduler
from worthwhile.cli import main
from worthwhile.errors import (
    AccessDenied,
    AlreadyReported,
    BadFeedback,
    BadParameter,
    BadTask,
    NotAllowed,
    ServiceError,
    UnknownScheduler,
    UnknownTask,
)

ONE = "/v1/schedulers/default"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("service"))) as running:
        yield running


def use(scheduler: Scheduler | Client, folder: Path) -> list[object]:
    """The same lines for both."""
    task = scheduler.decide("weather", options=[1, 5, np.int64(10)], key="job")
    again = scheduler.decide("weather", options=[1, 5, 10], key="job")
    task.report(reward=np.float64(0.5))
    scheduler.report(task.id, cost=2)
    task.observe(10, 0.6, 4)
    with scheduler.task("weather", [1, 5, 10]) as second:
        second.reward, second.cost = 0.7, 3.5
    third = scheduler.decide("weather", [None, True, 1.0, "1"], lease=60)
    third.cancel()
    scheduler.retire(1, kind="weather")
    scheduler.restore(1, kind="weather")
    scheduler.announce(["soon"], ["later"])
    scheduler.change(overhead=0.5)
    scheduler.change(policy="kind-greedy")
    scheduler.change(policy="ratio-imed")
    why, summary = scheduler.explain(task), scheduler.summary()
    lines = [line.__dict__ | {"decided": 0.0, "key": None} for line in scheduler.latest(2)]
    states = [line.state for line in scheduler.tasks([task.id, third.id])]
    rows = scheduler.export(folder / "log.csv")
    errors = []
    for call in (
        lambda: task.report(reward=9.0, cost=9.0),
        lambda: scheduler.report("77777", 1.0, 1.0),
        lambda: scheduler.report(task.id),
        lambda: scheduler.decide("weather", [2, 2]),
        lambda: scheduler.decide("other kind", [1], key="job"),
        lambda: scheduler.decide("weather", [float("nan")]),
        lambda: scheduler.change(policy="ratio-imd"),
        lambda: third.report(1.0, 1.0),
    ):
        with pytest.raises(worthwhile.Error) as found:
            call()
        errors.append((found.type.__name__, str(found.value)))
    return [
        (task.id, task.option, again.id, third.kind, second.option),
        (why.why, why.repeated, why.options),
        (summary.tasks, summary.reports, summary.ratio, summary.overhead, summary.policy, summary.kinds),
        lines, states, rows, scheduler.rebuild(), errors, (folder / "log.csv").read_text(),
    ]  # fmt: skip


def test_the_same_code_runs_here_and_there(service: ServiceProcess, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with Scheduler(name="same", seed=3) as scheduler:
        wanted = use(scheduler, here)
    httpx.put(f"{service.url}/v1/schedulers/same", json={"seed": 3}).raise_for_status()
    with Client(service.url, name="same") as client:
        assert use(client, there) == wanted


def test_many_in_one_request(service: ServiceProcess) -> None:
    with Client(service.url, name="many", policy="ratio-imed") as client:
        tasks = client.decide_many([("a", [1, 2]), ("b", ["x"])])
        assert [task.kind for task in tasks] == ["a", "b"]
        client.report_many([(task.id, 1.0, 2.0) for task in tasks])
        assert client.summary().ratio == 0.5
        with pytest.raises(AlreadyReported):
            client.report_many([(tasks[0].id, 2.0, 2.0)])
        with pytest.raises(BadTask, match="offered twice"):
            client.decide_many([("a", [1, 1])])


def test_what_is_wrong_is_said_in_the_librarys_words(service: ServiceProcess) -> None:
    with pytest.raises(UnknownScheduler, match="no scheduler 'nobody'"), Client(service.url, name="nobody") as client:
        client.summary()
    with pytest.raises(BadParameter, match="kind-greedy"):
        Client(service.url, policy="kind-greedy")
    with Client(service.url) as client:
        task = client.decide("a", [1])
        with pytest.raises(BadFeedback, match="above 0"):
            task.report(1.0, -1.0)
        with pytest.raises(UnknownTask):
            client.tasks(["../../x"])
        with pytest.raises(BadParameter, match=r"\.csv or \.jsonl"):
            client.export("log.parquet")


def test_nobody_there_is_an_error_once_patience_ends() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        began = time.monotonic()
        with (
            Client(f"http://127.0.0.1:{taken.getsockname()[1]}", patience=0.5) as client,
            pytest.raises(ServiceError, match="no answer"),
        ):
            client.decide("a", [1])
        assert time.monotonic() - began < 5.0


def test_an_answer_that_got_lost_counts_once(service: ServiceProcess) -> None:
    """A proxy that passes every request on, and hangs up on every other one before its answer arrives."""
    httpx.put(f"{service.url}/v1/schedulers/lossy", json={}).raise_for_status()
    listening = socket.create_server(("127.0.0.1", 0))
    seen = [0]

    def proxy() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            with caller, socket.create_connection(("127.0.0.1", service.port)) as server:
                request = b""
                while not request.endswith(b"}"):
                    request += caller.recv(65536)
                server.sendall(request)
                answer = b"".join(iter(lambda: server.recv(65536), b""))
                seen[0] += 1
                if seen[0] % 2 == 0:
                    caller.sendall(answer)

    threading.Thread(target=proxy, daemon=True).start()
    headers = {"connection": "close"}
    with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", name="lossy") as client:
        client.http.headers.update(headers)
        for _ in range(5):
            client.decide("a", [1, 2]).report(1.0, 2.0)
    listening.close()
    assert seen[0] == 20
    found = service.get("/v1/schedulers/lossy/summary").json()
    assert (found["tasks"], found["reports"]) == (5, 5)


def test_tokens_are_made_listed_and_revoked_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_at(tmp_path)
    assert main(["token", "create", store, "workers", "--scope", "decide", "--scope", "report"]) == 0
    token = capsys.readouterr().out.strip()
    assert token.startswith("ww_")
    assert main(["token", "create", store, "workers", "--scope", "read"]) == 2
    assert "already" in capsys.readouterr().err
    for wrong, words in ((["--scope", "all"], "there are decide"), ([], "no scope")):
        assert main(["token", "create", store, "x", *wrong]) == 2
        assert words in capsys.readouterr().err
    for wrong in (["create", store], ["list", store, "name"], ["revoke", store, "nobody"], ["list", "nowhere.db"]):
        assert main(["token", *wrong]) == 2
    capsys.readouterr()
    with ServiceProcess(store) as running:
        assert running.get(ONE).status_code == 401
        with Client(running.url, token) as client:
            client.decide("a", [1]).report(1.0, 1.0)
            with pytest.raises(NotAllowed, match="needs read"):
                client.summary()
            assert main(["token", "revoke", store, "workers"]) == 0
            time.sleep(2.5)
            running.get("/v1/health")
            with pytest.raises(AccessDenied, match="revoked"):
                client.decide("a", [1])
        running.stop()
        log = "".join(running.lines)
    assert '"path": "/v1/schedulers/default/tasks"' in log
    assert '"token": "workers"' in log
    assert token not in log
    capsys.readouterr()
    assert main(["token", "list", store]) == 0
    listed = capsys.readouterr().out
    assert "workers" in listed
    assert token not in listed
    assert token.encode() not in Path(store.removeprefix("sqlite:///")).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "there is no token yet"),
        (["--host", "example.invalid"], "there is no token yet"),
        (["--port", "99999999"], "cannot listen"),
        (["--patience", "0"], "above 0"),
        (["--port", "x"], "whole number"),
    ],
)
def test_serve_refuses_what_would_not_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["serve", "--store", store_at(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err
