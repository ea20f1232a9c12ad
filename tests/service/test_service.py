"""Faces: the service over HTTP, in this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from waiting import NET, wait_until
from worthwhile.live.stores import open_store
from worthwhile.service import tokens as auth
from worthwhile.service.app import create_app
from worthwhile.service.routes import ENDPOINTS

ONE = "/v1/schedulers/default"
OPTIONS = [1, 5, 10]


class Served:
    """An application with its event loop in a thread; requests are made as if over a network."""

    def __init__(self, url: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.app: Any = create_app(url, patience=NET)
        self.lifespan = self.app.app.lifespan()
        self.run(self.lifespan.__aenter__())
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://localhost")

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(NET)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        found: httpx.Response = self.run(self.http.request(method, path, **more))
        return found

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self.ask("POST", path, json=body, **more)

    def close(self) -> None:
        self.run(self.http.aclose())
        self.run(self.lifespan.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(NET)
        self.loop.close()


@pytest.fixture
def served(sqlite: str) -> Iterator[Served]:
    one = Served(sqlite)
    yield one
    one.close()


def decided(served: Served, **more: Any) -> Any:
    answer = served.post(f"{ONE}/tasks", {"kind": "weather", "options": OPTIONS, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_task_is_decided_reported_read_and_explained(served: Served) -> None:
    task = decided(served, key="job 1", lease=600)
    assert task == {"task": "1", "kind": "weather", "option": task["option"], "state": "running"}
    assert task["option"] in OPTIONS
    assert decided(served, key="job 1")["task"] == "1"
    assert served.get(f"{ONE}/tasks/1").json()["state"] == "running"
    assert served.post(f"{ONE}/tasks/1/report", {"reward": 0.9}).json() == {"taken": 1}
    assert served.post(f"{ONE}/tasks/1/report", {"cost": 3}).json() == {"taken": 1}
    assert served.post(f"{ONE}/tasks/1/report", {"reward": 0.9, "cost": 3}).json() == {"taken": 1}
    other = next(option for option in OPTIONS if option != task["option"])
    for _ in range(2):
        body = {"option": other, "reward": 0.5, "cost": 1}
        assert served.post(f"{ONE}/tasks/1/observations", body).status_code == 200
    summary = served.get(f"{ONE}/summary").json()
    assert (summary["tasks"], summary["reports"], summary["ratio"]) == (1, 1, 0.9 / 3)
    assert sum(option["observed"] for option in summary["kinds"][0]["options"]) == 1
    why = served.get(f"{ONE}/tasks/1/explanation").json()
    assert (why["why"], why["repeated"]) == ("it had not been tried with this kind", True)
    assert [line["task"] for line in served.get(f"{ONE}/tasks?count=5").json()] == ["1"]


@pytest.mark.parametrize("id", ["1.0", "1_0", "%EF%BC%91", "%201", "+1", "%2B1", "01", "-1", "1e0", "true"])
def test_an_id_is_what_decide_gave(served: Served, id: str) -> None:
    for _ in range(10):
        served.post(f"{ONE}/tasks", {"kind": "a", "options": OPTIONS})
    assert served.post(f"{ONE}/tasks/{id}/report", {"reward": 1, "cost": 1}).status_code == 404
    assert served.post(f"{ONE}/tasks/{id}/cancel", {}).status_code == 404
    assert served.get(f"{ONE}/tasks/{id}").status_code == 404
    assert served.get(f"{ONE}/tasks?ids=1,{id}").status_code in (400, 404)
    assert served.get(f"{ONE}/summary").json()["running"] == 10


def test_the_header_idempotency_key_is_the_key(served: Served) -> None:
    body, header = {"kind": "a", "options": [1]}, {"Idempotency-Key": "k"}
    assert [served.post(f"{ONE}/tasks", body, headers=header).json()["task"] for _ in range(2)] == ["1", "1"]
    many = {"tasks": [body, body]}
    found = [served.post(f"{ONE}/decide", many, headers=header).json()["tasks"] for _ in range(2)]
    assert [one["task"] for one in found[0]] == ["2", "3"]
    assert found[0] == found[1]


def test_the_header_idempotency_key_is_what_the_description_says(served: Served) -> None:
    body = {"kind": "a", "options": [1]}
    for key in ("", " ", "a b", "a" * 191, "ü".encode(), "\t"):
        for path, content in ((f"{ONE}/tasks", {**body, "key": "own"}), (f"{ONE}/decide", {"tasks": [body]})):
            answer = served.post(path, content, headers={"Idempotency-Key": key})
            assert (answer.status_code, answer.json()["title"]) == (400, "BadRequest"), key
    assert served.post(f"{ONE}/tasks", body, headers={"Idempotency-Key": "!~" * 95}).status_code == 200
    paths = served.get("/v1/openapi.json").json()["paths"]
    named = [
        (method, path) for path, methods in paths.items() for method, each in methods.items()
        if any(parameter["name"] == "Idempotency-Key" for parameter in each["parameters"])
    ]  # fmt: skip
    one = "/v1/schedulers/{scheduler}"
    assert named == [("post", f"{one}/tasks"), ("post", f"{one}/decide")]


def test_a_query_without_a_value_is_refused_like_a_wrong_one(served: Served) -> None:
    for query in ("export?format=", "tasks?ids=", "tasks?count=", "series?points="):
        assert served.get(f"{ONE}/{query}").status_code == 400


def test_many_at_once_each_with_its_own_answer(served: Served) -> None:
    tasks = [{"kind": "a", "options": [None]}, {"kind": "a", "options": [2, 2]}, {"kind": "b", "options": ["x"]}]
    first, second, third = served.post(f"{ONE}/decide", {"tasks": tasks}).json()["tasks"]
    assert first == {"task": "1", "kind": "a", "option": None, "state": "running"}
    assert second["problem"]["detail"] == "option 2 is offered twice"
    assert third["option"] == "x"
    reports = [
        {"task": "1", "reward": 1, "cost": 2},
        {"task": "2", "reward": 1},
        {"task": "99", "reward": 1, "cost": 1},
        {"task": "1", "reward": 7, "cost": 2},
    ]
    found = served.post(f"{ONE}/reports", {"reports": reports}).json()
    assert found["taken"] == 2
    assert [(one["place"], one["problem"]["title"]) for one in found["refused"]] == [
        (2, "UnknownTask"),
        (3, "AlreadyReported"),
    ]


def test_schedulers_are_made_listed_read_and_changed(served: Served) -> None:
    assert served.get("/v1/schedulers").json() == {"schedulers": ["default"]}
    other = "/v1/schedulers/" + "t%C3%B6%20ols"
    for _ in range(2):
        made = served.ask("PUT", other, json={"policy": "kind-greedy", "overhead": 0.5})
        assert (made.status_code, made.json()["scheduler"], made.json()["overhead"]) == (200, "tö ols", 0.5)
    differs = served.ask("PUT", other, json={"policy": "random-option"})
    assert (differs.status_code, differs.json()["title"]) == (422, "BadParameter")
    changed = served.ask("PATCH", other, json={"policy": "ratio-imed", "overhead": 1}).json()
    assert (changed["policy"], changed["overhead"]) == ("ratio-imed", 1.0)
    assert served.ask("PATCH", other, json={"policy": "none"}).status_code == 422
    assert served.get("/v1/schedulers").json() == {"schedulers": ["default", "tö ols"]}
    assert served.get("/v1/schedulers/nobody").json()["title"] == "UnknownScheduler"
    for path in ("/v1/schedulers/nobody", "/v1/schedulers/nobody/summary", "/schedulers/nobody"):
        answer = served.get(path)
        assert answer.status_code == 404
        assert not [word for word in ("tasks.db", "sqlite", "default", "ols") if word in answer.text]


def test_no_answer_and_no_log_line_shows_the_stores_password(
    second_server: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(f"{second_server.get_uri()}&password=hunter2")
    try:
        answers = [served.get("/v1/schedulers/nobody").text]
        second_server.cleanup()
        monkeypatch.setattr("worthwhile.live.stores.postgres_connection.PATIENCE", 0.1)  # it will not start again
        for path in (f"{ONE}/summary", "/v1/schedulers", "/v1/ready", "/schedulers/default"):
            answer = served.get(path)
            assert answer.status_code == 503
            answers.append(answer.text)
    finally:
        served.close()
    assert "hunter2" not in "".join(answers) + caplog.text
    assert "password=…" in caplog.text


def test_options_are_retired_and_restored_also_twice(served: Served) -> None:
    for _ in range(2):
        assert served.post(f"{ONE}/retire", {"option": 1}).json()["retired"] == [{"option": 1, "kind": None}]
    assert served.post(f"{ONE}/tasks", {"kind": "a", "options": [1]}).json()["title"] == "BadTask"
    for _ in range(2):
        assert served.post(f"{ONE}/restore", {"option": 1}).json()["retired"] == []
    assert served.post(f"{ONE}/tasks", {"kind": "a", "options": [1]}).status_code == 200


def test_a_cancelled_task_takes_no_report(served: Served) -> None:
    decided(served)
    for _ in range(2):
        assert served.post(f"{ONE}/tasks/1/cancel", {}).status_code == 200
    refused = served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 1})
    assert (refused.status_code, refused.json()["title"]) == (409, "AlreadyCancelled")
    assert refused.headers["content-type"] == "application/problem+json"


def test_the_log_is_exported(served: Served) -> None:
    served.post(f"{ONE}/tasks", {"kind": "a,b", "options": ["long"]})
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 2})
    [line] = served.get(f"{ONE}/export").text.splitlines()
    assert json.loads(line)["task_type"] == "a,b"
    first = '1,"a,b",1,long,1.0,2.0,0.0,False,"""long""",result,,0,,chosen,1.0,'
    assert served.get(f"{ONE}/export?format=csv").text.splitlines()[1] == first


def test_the_summary_says_who_wins_and_what_other_rules_would_have_earned(served: Served) -> None:
    """The README's two kinds: one option for x, two for y, of which the one with the worse ratio is right."""
    means = {("x", "only"): (3.0, 1.0), ("y", "long"): (3.0, 2.0), ("y", "short"): (1.0, 1.0)}
    offered = {"x": ["only"], "y": ["long", "short"]}
    for round in range(60):
        kind = "y" if round % 5 == 4 else "x"
        task = served.post(f"{ONE}/tasks", {"kind": kind, "options": offered[kind]}).json()
        reward, cost = means[kind, task["option"]]
        noise = 0.01 * (round % 3 - 1)
        served.post(f"{ONE}/tasks/{task['task']}/report", {"reward": reward + noise, "cost": cost})
    found = served.get(f"{ONE}/summary").json()
    x, y = found["kinds"]
    assert (x["kind"], x["verdict"]) == ("x", "only only has been tried")
    assert (y["winner"], y["settled"], y["verdict"]) == ("short", False, "short leads; long has one report only")
    scores = {one["option"]: one["score"] for one in y["options"]}
    assert scores["short"] > scores["long"]
    single, greedy, random = found["comparisons"]
    assert single["says"] == "always short; too few tries to tell of long"  # x has no choice
    assert single["ratio"] == pytest.approx((48 * 3 + 12 * 1) / (48 + 12), rel=0.01)
    assert single["low"] < single["ratio"] < single["high"]
    assert greedy["says"] == "for each kind alone, its best reward per cost; too few tries to tell of long"
    assert (random["says"], random["ratio"]) == ("too few tries to tell of long", None)
    assert single["advantage"] == pytest.approx(found["ratio"] / single["ratio"] - 1)
    points = served.get(f"{ONE}/series?points=10").json()["points"]
    assert len(points) <= 10
    assert points[-1]["reports"] == 60
    assert points[-1]["ratio"] == pytest.approx(found["ratio"])


def test_the_summary_counts_what_was_seen_on_the_side(served: Served) -> None:
    """One lucky report of the short option is put right by what the long ones showed of it."""
    for number in range(1, 61):
        task = served.post(f"{ONE}/tasks", {"kind": "a", "options": [1, 16] if number > 1 else [1]}).json()
        reward, cost = (0.9, 1.0) if number == 1 else (0.8, 2.0)
        served.post(f"{ONE}/tasks/{number}/report", {"reward": reward + 0.01 * (number % 3), "cost": cost})
        if number == 1:
            served.post(f"{ONE}/announce", {"options": [16]})
            assert served.ask("PATCH", ONE, json={"policy": "fixed-option,option=16"}).status_code == 200
        else:
            assert task["option"] == 16
            body = {"option": 1, "reward": 0.1 + 0.01 * (number % 2), "cost": 1.0}
            assert served.post(f"{ONE}/tasks/{number}/observations", body).status_code == 200
    found = served.get(f"{ONE}/summary").json()
    [kind] = found["kinds"]
    assert (kind["winner"], kind["settled"]) == (16, True)
    short = kind["options"][1]
    assert (short["option"], short["pulls"], short["observed"]) == (1, 1, 59)
    assert short["mean_reward"] == pytest.approx((0.91 + 59 * 0.1 + 0.29) / 60)
    assert found["reports"] == 60
    assert found["warnings"] == []
    page = served.get("/schedulers/default").text
    assert "+ 59<span" in page
    assert "what other tasks showed" in page


def test_warnings_say_what_somebody_should_look_at(served: Served) -> None:
    def warnings() -> str:
        return "\n".join(served.get(f"{ONE}/summary").json()["warnings"])

    assert warnings() == ""
    decided(served, lease=0)
    assert "Chosen, but never reported: weather / 1 (1 task)" in warnings()
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": -1})
    assert "its log says why: 1 report." in warnings()
    for round in range(150):
        task = served.post(f"{ONE}/tasks", {"kind": "a", "options": ["cheap", "dear"]}).json()
        cheap = task["option"] == "cheap"
        reward = 1.0 + 0.1 * (round % 2) + (5.0 if round > 110 else 0.0)
        served.post(f"{ONE}/tasks/{task['task']}/report", {"reward": reward, "cost": 1.0 if cheap else 9.0})
    assert "The cheapest option wins for every kind" in warnings()
    assert "Something has changed: a / cheap (reward 1.05, since report 111 5.92). If that goes on, " in warnings()
    assert "let old evidence fade: policy='ratio-imed,half_life=100'." in warnings()


def test_metrics_count_requests_and_tasks(served: Served) -> None:
    decided(served)
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 4})
    served.get("/nowhere/at/all")
    lines = served.get("/metrics").text.splitlines()
    assert 'worthwhile_decisions_total{scheduler="default"} 1' in lines
    assert 'worthwhile_ratio{scheduler="default"} 0.25' in lines
    assert 'worthwhile_requests_total{method="POST",route="/v1/schedulers/{scheduler}/tasks",status="200"} 1' in lines
    assert 'worthwhile_requests_total{method="GET",route="other",status="404"} 1' in lines
    assert 'worthwhile_request_seconds_count{route="/v1/schedulers/{scheduler}/tasks"} 1' in lines


def test_history_is_told_from_what_was_decided_here(served: Served) -> None:
    row = {"key": "k", "kind": "a", "option": 1, "reward": 3, "cost": 4}
    decided(served)
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 4})
    for taken in (2, 0):
        assert served.post(f"{ONE}/history", {"rows": [row, row | {"key": "l"}]}).json() == {"taken": taken}
    for new in ({"key": "new"}, {}):  # all rows or none, whatever is in the log already
        answer = served.post(f"{ONE}/history", {"rows": [row | new, row | {"cost": 5}]})
        assert (answer.status_code, answer.json()["title"]) == (409, "AlreadyReported")
        assert answer.json()["detail"].startswith("row 1: key 'k' now has cost 5.0, but cost 4.0 in what is known")
    answer = served.post(f"{ONE}/history", {"rows": [row | {"key": "m"}, row | {"key": "m", "cost": 5}]})
    assert "key 'm' now has cost 5.0, but cost 4.0 in row 0; a row counts once" in answer.json()["detail"]
    summary = served.get(f"{ONE}/summary").json()
    assert (summary["reports"], summary["history"]) == (3, 2)
    assert (summary["history_reward"], summary["history_cost"]) == (6.0, 8.0)
    lines = served.get("/metrics").text.splitlines()
    assert 'worthwhile_reports_total{scheduler="default"} 3' in lines
    assert 'worthwhile_history_total{scheduler="default"} 2' in lines
    assert 'worthwhile_history_cost{scheduler="default"} 8.0' in lines
    page = served.get("/schedulers/default").text
    assert "+ 2 from history" in page
    assert "reward per cost without it: 0.25" in page


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"{", JSON, 400, "no JSON"),
        (b"", JSON, 400, "no JSON"),
        (b"\xff\xfe", JSON, 400, "no JSON"),
        (b"[" * 500_000, JSON, 400, "Expected `object`"),
        (b'{"kind": "a", "options": ' + b"[" * 500_000, JSON, 400, "got `array`"),
        (b'{"kind": "a", "options": [1], "more": {"x": 1}}', JSON, 400, "unknown field `more`"),
        (b'{"kind": 1, "options": [1]}', JSON, 400, "Expected `str`, got `int` - at `$.kind`"),
        (b'{"kind": "a", "options": []}', JSON, 400, "length >= 1"),
        (b'{"kind": "a", "options": [1e999]}', JSON, 400, ""),
        (b'{"kind": "a", "options": [NaN]}', JSON, 400, "no JSON"),
        (b'{"kind": "a", "options": [1' + b"0" * 400 + b"]}", JSON, 422, "at most 200"),
        (b'{"kind": "a\\u0000", "options": [1]}', JSON, 422, "character"),
        (b'{"kind": "\\ud800", "options": [1]}', JSON, 400, "no JSON"),
        (b'{"kind": "a", "options": [1], "lease": -1}', JSON, 422, "lease = -1"),
        (b'{"kind": "a", "options": [1]}', {"content-type": "text/plain"}, 415, "send application/json"),
        (b'{"kind": "a", "options": [1]}', {}, 415, "send application/json"),
        (b"kind=a", {"content-type": "application/x-www-form-urlencoded"}, 415, "send application/json"),
        (b" " * 10_000_000, JSON, 413, "more than 1048576 bytes"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(
    served: Served, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    answer = served.ask("POST", f"{ONE}/tasks", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]
    assert served.get(ONE).json()["tasks"] == 0


def test_a_body_that_comes_in_pieces_is_limited_too(served: Served) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    assert served.ask("POST", f"{ONE}/tasks", content=pieces(), headers=JSON).status_code == 413


@pytest.mark.parametrize(
    "path",
    ["/v1/schedulers/../../etc/passwd", "/v1//schedulers", "/v1/schedulers/", "/v1/schedulers/%2e%2e%2f/summary",
     "/static/../app.py", "/static/%2e%2e/pages.py", "/v1/schedulers/default/tasks/1%00", "//etc/passwd",
     "/v1/schedulers/default/tasks/-1", "/v1/schedulers/default/tasks/99999999999999999999999",
     "/v1/schedulers/%00", "/v1/schedulers/" + "x" * 3000],
)  # fmt: skip
def test_path_tricks_lead_nowhere(served: Served, path: str) -> None:
    answer = served.get(path)
    assert answer.status_code in (404, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_large_whole_numbers_are_options_like_others(served: Served) -> None:
    big = 10**30
    answer = served.ask("POST", f"{ONE}/tasks", content=b'{"kind": "a", "options": [%d]}' % big, headers=JSON)
    assert answer.status_code == 200
    assert served.get(f"{ONE}/summary").status_code == 200
    assert served.get(f"{ONE}/tasks/1/explanation").status_code == 200


def test_a_wrong_method_is_refused(served: Served) -> None:
    answer = served.ask("DELETE", ONE)
    assert (answer.status_code, answer.json()["status"]) == (405, 405)
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "PUT", "PATCH"}


def test_pages_of_other_sites_can_change_nothing(served: Served) -> None:
    body = {"kind": "a", "options": [1]}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        assert served.post(f"{ONE}/tasks", body, headers=headers).status_code == 403
    assert served.post(f"{ONE}/tasks", body, headers={"host": "evil.example"}).status_code == 403
    assert served.get(f"{ONE}/summary", headers={"host": "evil.example"}).status_code == 403
    assert served.post(f"{ONE}/tasks", body, headers={"origin": "http://localhost"}).status_code == 200
    assert served.get(ONE).json()["tasks"] == 1


def test_a_browser_is_told_to_load_nothing_from_elsewhere(served: Served) -> None:
    for path in ("/", "/docs", "/v1/health", "/nowhere"):
        headers = served.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def guarded(sqlite: str) -> Iterator[tuple[Served, dict[str, str]]]:
    """A service whose store has a token for every scope, and one that was revoked."""
    store = open_store(sqlite)
    tokens = {scope: auth.create_token(store, scope, [scope]) for scope in auth.SCOPES}
    tokens["revoked"] = auth.create_token(store, "revoked", ["admin"])
    auth.revoke_token(store, "revoked")
    store.close()
    one = Served(sqlite)
    yield one, tokens
    one.close()


@pytest.fixture
def read_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are read again after a tenth of a second instead of two; it must be asked for before the service."""
    monkeypatch.setattr("worthwhile.service.auth.REFRESH_AFTER", 0.1)


def logged_in(served: Served, token: str) -> str:
    """A browser's cookie."""
    answer = served.post("/login", {"token": token})
    assert answer.status_code == 200, answer.text
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_every_endpoint_asks_for_the_right_token(guarded: tuple[Served, dict[str, str]], endpoint: Any) -> None:
    served, tokens = guarded
    path = endpoint.path.format(scheduler="default", task="1")

    def status(headers: Any) -> int:
        body = {"json": {}} if endpoint.method != "GET" else {}
        return served.ask(endpoint.method, path, headers=headers, **body).status_code

    wrong: list[Any] = [{}, bearer("ww_wrong"), bearer(tokens["revoked"]), {"authorization": "Basic eDp5"}]
    wrong += [{"authorization": b"Bearer \xfc"}, {"cookie": f"worthwhile={tokens['revoked']}"}]
    if endpoint.scope == "none":
        assert {status(headers) for headers in wrong} == {200}
        return
    assert {status(headers) for headers in wrong} == {401}
    small = next(scope for scope in ("read", "decide") if scope != endpoint.scope)
    assert status(bearer(tokens[small])) == 403
    assert status(bearer(tokens[endpoint.scope])) not in (401, 403)
    assert status(bearer(tokens["admin"])) not in (401, 403)
    assert status({"cookie": f"worthwhile={tokens['admin']}"}) == 401  # a cookie is no place for a token
    by_cookie = status({"cookie": f"a=b; {logged_in(served, tokens['admin'])}"})
    assert (by_cookie == 401) == (endpoint.method != "GET")


@pytest.mark.usefixtures("read_often")
def test_a_token_that_is_revoked_is_of_no_use_soon(guarded: tuple[Served, dict[str, str]], sqlite: str) -> None:
    served, tokens = guarded
    assert served.get(ONE, headers=bearer(tokens["read"])).status_code == 200
    store = open_store(sqlite)
    auth.revoke_token(store, "read")
    assert not any(tokens["read"] in str(row) for row in auth.list_tokens(store))
    store.close()
    wait_until(
        lambda: served.get(ONE, headers=bearer(tokens["read"])).status_code == 401, "the tokens to be read again"
    )


def test_a_full_queue_sends_clients_away_for_a_while(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    decided(served)
    monkeypatch.setattr("worthwhile.service.dispatcher.MOST_QUEUED", 1)
    tasks = [{"kind": "a", "options": [1]}] * 2
    answer = served.post(f"{ONE}/decide", {"tasks": tasks})
    assert (answer.status_code, answer.headers["retry-after"], answer.json()["title"]) == (503, "1", "Overloaded")
    assert decided(served)["task"] == "2"


def test_the_description_names_every_endpoint(served: Served) -> None:
    found = served.get("/v1/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert described == {(one.method, one.path) for one in ENDPOINTS}
    ids = [one["operationId"] for methods in found["paths"].values() for one in methods.values()]
    assert len(set(ids)) == len(ids)
    messages = found["components"]["schemas"]
    assert messages["Decide"]["additionalProperties"] is False


def test_the_description_says_what_is_always_there_and_what_may_be_left_out(served: Served) -> None:
    messages = served.get("/v1/openapi.json").json()["components"]["schemas"]
    assert messages["Decide"]["required"] == ["kind", "options"]
    assert set(messages["Decided"]["required"]) == set(messages["Decided"]["properties"]) - {"attempt"}
    assert set(messages["Explanation"]["required"]) == set(messages["Explanation"]["properties"])
    assert "expired" in messages["TaskLine"]["properties"]["state"]["enum"]


def test_the_address_of_an_error_is_a_place_on_the_page_of_the_api(served: Served) -> None:
    kind = served.post(f"{ONE}/tasks", {"kind": "a", "options": [2, 2]}).json()["type"]
    assert kind == "/docs#BadTask"
    page = served.get("/docs").text
    for title in ("BadRequest", "UnknownTask", "UnknownScheduler", "AlreadyReported", "Overloaded", "BadTask"):
        assert f'id="{title}"' in page


def test_a_page_shows_some_kinds_or_one_in_full(served: Served) -> None:
    for kind in range(12):
        tasks = [{"kind": f"kind & {kind}", "options": [option]} for option in range(kind + 1)]
        served.post(f"{ONE}/decide", {"tasks": tasks})

    def articles(query: str) -> tuple[int, int]:
        page = served.get(f"/schedulers/default?{query}").text
        return page.count('<article class="card kind"'), page.count('class="name"')

    recent = 10
    assert articles("")[0] == 10
    assert articles("kinds=100")[0] == 12
    assert articles("kinds=5&skip=10")[0] == 2
    assert articles("kind=kind+%26+11") == (1, 12 + recent)
    assert "kind+%26+11" in served.get("/schedulers/default?kind=kind+%26+11").text  # where its sections come from
    assert articles("kind=nobody")[0] == 0
    assert served.get("/schedulers/default?kinds=101").status_code == 400
