"""Faces: the client speaks to a real service as if its scheduler were here, and gives up only when told to."""

from __future__ import annotations

import csv
import inspect
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

import worthwhile
from service_process import ServiceProcess, store_at
from waiting import NET, wait_until
from worthwhile import Client, Scheduler
from worthwhile.cli.main import main
from worthwhile.errors import (
    AccessDenied,
    AlreadyReported,
    BadFeedback,
    BadParameter,
    BadTask,
    NotAllowed,
    Overloaded,
    ServiceError,
    Undeclared,
    UnknownScheduler,
    UnknownTask,
)
from worthwhile.live.history import FORMATS
from worthwhile.policies.imed import RatioImed
from worthwhile.tables import read_columns

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
    scheduler.change(policy=RatioImed())
    state = scheduler.decide("weather", options=[1, 5, 10], key="job").state
    new = [scheduler.load(folder.parent / "old.csv") for _ in range(2)]
    why, summary = scheduler.explain(task), scheduler.summary()
    lines = [line.__dict__ | {"decided": 0.0, "key": None} for line in scheduler.latest(2)]
    states = [line.state for line in scheduler.tasks([task.id, 77777, third.id])]
    none = scheduler.tasks([])
    rows = [scheduler.export(folder / f"log{format}") for format in FORMATS]
    tables = [
        {name: list(column) for name, column in read_columns(folder / f"log{format}")[0].items()} for format in FORMATS
    ]
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
        lambda: scheduler.export(folder / "log.txt"),
        lambda: scheduler.load(folder.parent / "nothing.csv"),
    ):
        with pytest.raises(worthwhile.Error) as found:
            call()
        errors.append((found.type.__name__, str(found.value)))
    return [
        (task.id, task.option, again.id, third.kind, second.option),
        (why.why, why.repeated, why.options),
        (summary.tasks, summary.reports, summary.ratio, summary.overhead, summary.policy, summary.kinds),
        lines, states, none, rows, state, new, scheduler.rebuild(), tables,
        [(kind, words.replace(str(folder), "")) for kind, words in errors],
        [(folder / f"log{format}").read_text() for format in (".csv", ".jsonl")],
    ]  # fmt: skip


def test_the_same_code_runs_here_and_there(service: ServiceProcess, tmp_path: Path) -> None:
    rows = [
        ["task_type", "item_id", "option", "reward", "cost"],
        ["weather", "a", "5", 0.9, 3],
        ["new", "b", "x\u2028y", 1, 2],
    ]
    with open(tmp_path / "old.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with Scheduler(name="same", seed=3) as scheduler:
        wanted = use(scheduler, here)
    with Client(service.url, name="same", seed=3) as client:
        found = use(client, there)
    for one, other in zip(found, wanted, strict=True):
        assert repr(one) == repr(other)  # NaN is not NaN


def test_units_and_declared_names_are_told_over_http(service: ServiceProcess) -> None:
    names = {"weather": [1, 5, 10], "rice": ["small", None]}
    with Client(service.url, name="labelled", reward_unit="points", cost_unit="$") as client:
        client.declare(names)
        assert client.summary().ratio_unit == "points/$"
        facts = service.get("/v1/schedulers/labelled").json()
        assert (facts["declared"], facts["reward_unit"], facts["cost_unit"]) == (names, "points", "$")
        with pytest.raises(Undeclared, match="did you mean weather"):
            client.decide("wether", [1])
        client.change(cost_unit="USD")
        client.declare({})
        client.decide("wether", [1]).report(1.0, 2.0)
        assert len(client.plot().axes) == 2
        with pytest.raises(BadParameter, match="cost_unit 'USD'"):
            Client(service.url, name="labelled", cost_unit="EUR")
        actions = [entry["action"] for entry in service.get("/v1/audit").json() if entry["scheduler"] == "labelled"]
        assert actions.count("names declared") == 2


def test_a_client_has_every_method_of_a_scheduler() -> None:
    def methods(kind: type) -> dict[str, inspect.Signature]:
        return {
            name: inspect.signature(one, eval_str=True)
            for name, one in vars(kind).items()
            if inspect.isfunction(one) and not name.startswith("_")
        }

    here, there = methods(Scheduler), methods(Client)
    assert {name: there.get(name) for name in here} == here


def test_history_goes_over_in_portions_and_comes_back_as_a_stream(service: ServiceProcess, tmp_path: Path) -> None:
    """Names as long as they may be, so that a thousand rows are more than one request takes."""
    path = tmp_path / "long.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["task_type", "item_id", "option", "reward", "cost", "overhead"])
        writer.writerows(
            [[f"{n % 9:\u2029<66}", f"{n:0150}", f"{n % 7:\x1f<30}", 0.5, 1.0 + n, 0.25] for n in range(3000)]
        )
    with Client(service.url, name="loaded", policy="ratio-imed") as client, Scheduler() as scheduler:
        assert client.load(path) == 3000
        assert client.load(path) == 0
        assert scheduler.load(path) == 3000
        assert list(client._lines(2990)) == list(scheduler._transactor.lines(2990))
        for one, name in ((client, "there"), (scheduler, "here")):
            assert one.export(tmp_path / f"{name}.jsonl") == 3000
        assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
        assert client.summary() == replace(scheduler.summary(), scheduler="loaded")
    row = {"key": "k", "kind": "a", "option": 1, "reward": 1, "cost": 1}
    for wrong in ({"cost": 0}, {"overhead": -1}, {"kind": "\0"}):
        answer = service.post("/v1/schedulers/loaded/history", {"rows": [row, row | wrong]})
        assert (answer.status_code, answer.json()["detail"][:6]) == (422, "row 1:")
    assert service.get("/v1/schedulers/loaded").json()["reports"] == 3000


@pytest.mark.slow
def test_an_export_that_breaks_off_goes_on_where_it_was(service: ServiceProcess, tmp_path: Path) -> None:
    """A proxy that hangs up in the middle of its first two answers."""
    with Client(service.url, name="long", policy="ratio-imed") as client:
        for _ in range(4):
            tasks = client.decide_many([("a kind with a long name", [1, 2])] * 5000)
            client.report_many([(task.id, 0.5, 2.0) for task in tasks])
        client.export(tmp_path / "whole.csv")
    with Breaking(service.port, at=1_100_000, times=2) as proxy, Client(proxy.url, name="long") as client:
        assert client.export(tmp_path / "broken.csv") == 20_000
        assert proxy.broken == 2
    assert (tmp_path / "broken.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    with (
        Breaking(service.port, at=1000, times=99) as proxy,
        Client(proxy.url, name="long", patience=0.3) as client,
        pytest.raises(ServiceError, match="no answer"),
    ):
        client.export(tmp_path / "broken.csv")
    assert (tmp_path / "broken.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


class Breaking:
    """A proxy that hangs up after so many bytes of an answer, so many times."""

    def __init__(self, port: int, at: int, times: int) -> None:
        self.port, self.at, self.times, self.broken = port, at, times, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self) -> None:
        while True:
            try:
                caller, _ = self.listening.accept()
            except OSError:
                return
            with caller, socket.create_connection(("127.0.0.1", self.port)) as server:
                server.sendall(caller.recv(65536).replace(b"keep-alive", b"close"))
                sent, most = 0, self.at if self.broken < self.times else 1 << 40
                while sent < most and (portion := server.recv(65536)):
                    caller.sendall(portion)
                    sent += len(portion)
                self.broken += sent >= most

    def __enter__(self) -> Breaking:
        return self

    def __exit__(self, *reason: object) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join(NET)


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


def test_what_is_wrong_is_said_in_the_librarys_words(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        pytest.fail("what will not change was to be tried again")

    monkeypatch.setattr("worthwhile.service.client.Backoff.wait", never)
    with Client(service.url, name="nobody") as client:
        for call in (client.summary, lambda: client.decide("a", [1]), lambda: list(client._lines())):
            with pytest.raises(UnknownScheduler, match="no scheduler 'nobody'"):
                call()
    with pytest.raises(BadParameter, match="kind-greedy"):
        Client(service.url, policy="kind-greedy")
    with Client(service.url) as client:
        task = client.decide("a", [1])
        with pytest.raises(BadFeedback, match="above 0"):
            task.report(1.0, -1.0)
        with pytest.raises(UnknownTask):
            client.tasks(["../../x"])


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"200 OK\r\ncontent-length: 5\r\n\r\nhello", ServiceError, "no answer of the service"),
        (b"301 Moved\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", ServiceError, "301 Moved"),
        (b"404 Not Found\r\ncontent-length: 0\r\n\r\n", ServiceError, "404 Not Found"),
        (b"502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", Overloaded, "502 Bad Gateway"),
    ],
)
def test_an_answer_that_is_not_the_services_is_an_error_of_ours(answer: bytes, error: type, words: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def work() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            with caller:
                caller.recv(65536)
                caller.sendall(b"HTTP/1.1 " + answer)

    thread = threading.Thread(target=work)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with Client(url, patience=0.3) as client, pytest.raises(ServiceError, match=words) as found:
        client.summary()
    assert found.type is error
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(NET)


def test_nobody_there_is_an_error_once_patience_ends() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with (
            Client(f"http://127.0.0.1:{taken.getsockname()[1]}", patience=0.5) as client,
            pytest.raises(ServiceError, match="no answer"),
        ):
            client.decide("a", [1])


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


@pytest.mark.slow
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
            mine = {"authorization": f"Bearer {token}"}
            wait_until(lambda: running.get(ONE, headers=mine).status_code == 401, "the token to be read again")
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


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", ""])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadParameter, match="write http://host:port"):
        Client(url)
    with pytest.raises(BadParameter, match="token"):
        Client("http://127.0.0.1:1", token="gehéim")
