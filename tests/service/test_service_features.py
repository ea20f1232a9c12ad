"""Faces: features of a task over HTTP and through a client: taken, shown, refused by name, and forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import pytest
from test_service import JSON, ONE, Served, bearer, decided

from featured import solve
from service_process import ServiceProcess, store_at
from worthwhile import Client, Scheduler
from worthwhile.errors import BadTask, NotAllowed, UnknownTask
from worthwhile.live.explain import Explanation
from worthwhile.live.stores import open_store
from worthwhile.live.summary import Summary
from worthwhile.service.routes import in_portions
from worthwhile.service.schemas import LONGEST_FEATURES, MOST_FEATURES
from worthwhile.service.tokens import create_token

KNOWN: dict[str, Any] = {"clauses": 12000, "density": 4.25, "gpu": True, "family": "crypto"}
SECRET = "Ada Lovelace"


@pytest.fixture
def served(sqlite: str) -> Iterator[Served]:
    one = Served(sqlite)
    yield one
    one.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("features"))) as running:
        yield running


def shown_features(served: Served, task: str) -> list[Any]:
    """What every answer about a task says of its features."""
    line, why = served.get(f"{ONE}/tasks/{task}").json(), served.get(f"{ONE}/tasks/{task}/explanation").json()
    [listed] = [one for one in served.get(f"{ONE}/tasks?count=100").json() if one["task"] == task]
    return [line["features"], why["features"], listed["features"]]


def test_features_are_shown_with_their_task(served: Served) -> None:
    decided(served, features=KNOWN | {"age": None})  # which is not known
    decided(served)
    assert shown_features(served, "1") == [KNOWN] * 3
    assert [type(value) for value in shown_features(served, "1")[0].values()] == list(map(type, KNOWN.values()))
    assert not any(shown_features(served, "2"))
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 2})
    assert json.loads(json.loads(served.get(f"{ONE}/export").text)["features"]) == KNOWN
    page = served.get("/schedulers/default/tasks/1").text
    for words in ("<dt>clauses</dt><dd>12000</dd>", "<dt>gpu</dt><dd>true</dd>", "<dt>family</dt><dd>crypto</dd>"):
        assert words in page
    assert "<dt>age</dt>" not in page
    assert "features-title" not in served.get("/schedulers/default/tasks/2").text


def test_features_are_text_on_a_page_and_never_markup(served: Served) -> None:
    name, value = "<script>alert(1)</script>", "\"'><img src=x onerror=alert(2)>\x1b[2J"
    decided(served, features={name: value})
    page = served.get("/schedulers/default/tasks/1").text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_same_key_is_the_same_task_with_its_first_features(served: Served) -> None:
    first = decided(served, features={"size": 1}, key="job")
    for more in ({"features": {"size": 1}}, {}, {"features": {"size": 2}}):
        assert decided(served, key="job", **more) == first
    header = {"Idempotency-Key": "k"}
    body = {"kind": "a", "options": [1], "features": {"size": 3}}
    assert [served.post(f"{ONE}/tasks", body, headers=header).json()["task"] for _ in range(2)] == ["2", "2"]
    assert shown_features(served, "1") == [{"size": 1}] * 3
    assert shown_features(served, "2") == [{"size": 3}] * 3


def test_of_many_each_has_its_own_features_or_its_own_problem(served: Served) -> None:
    task = {"kind": "a", "options": [1, 2]}
    long = {"text": "x" * LONGEST_FEATURES}
    bodies = [task | {"features": {"size": 1}}, task | {"features": long}, task, task | {"features": {}}]
    for _ in range(2):
        answers = served.post(f"{ONE}/decide", {"tasks": bodies}, headers={"Idempotency-Key": "m"}).json()["tasks"]
        assert [one.get("task") for one in answers] == ["1", None, "2", "3"]
        assert (answers[1]["problem"]["title"], answers[1]["problem"]["status"]) == ("BadTask", 422)
        assert str(LONGEST_FEATURES) in answers[1]["problem"]["detail"]
    assert shown_features(served, "1") == [{"size": 1}] * 3


@pytest.mark.parametrize(
    ("features", "status", "words"),
    [
        (b"5", 400, "Expected `object | null`, got `int` - at `$.features`"),
        (b'["a"]', 400, "got `array` - at `$.features`"),
        (b'"a=1"', 400, "got `str` - at `$.features`"),
        (b'{"a": [1]}', 400, "got `array` - at `$.features[...]`"),
        (b'{"a": {"b": 1}}', 400, "got `object` - at `$.features[...]`"),
        (b'{"": 1}', 400, "length >= 1"),
        (b'{"a": NaN}', 400, "no JSON"),
        (b'{"a": 1e999}', 400, ""),
        (b'{"a\\u0000": 1}', 422, "a\\x00"),
        (b'{"a": "' + b"x" * 201 + b'"}', 422, "feature 'a'"),
        (b'{"a": 1' + b"0" * 400 + b"}", 422, "'a'"),
        (b'{"\\ud800": 1}', 400, "no JSON"),
        (b'{"' + b"x" * 201 + b'": 1}', 400, "length <= 200"),
        (json.dumps({"ü" * 101: 1}, ensure_ascii=False).encode(), 422, "at most 200"),
        (json.dumps({str(place): 1 for place in range(MOST_FEATURES + 1)}).encode(), 400, f"length <= {MOST_FEATURES}"),
        (json.dumps({str(place): "x" * 50 for place in range(100)}).encode(), 422, f"{LONGEST_FEATURES}"),
    ],
)
def test_bad_features_are_refused_by_name(served: Served, features: bytes, status: int, words: str) -> None:
    body = b'{"kind": "a", "options": [1], "features": ' + features + b"}"
    answer = served.ask("POST", f"{ONE}/tasks", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.json()["title"] == ("BadTask" if status == 422 else "BadRequest")
    assert words in answer.json()["detail"]
    assert served.get(ONE).json()["tasks"] == 0


def test_as_many_features_as_there_may_be(served: Served) -> None:
    most = {f"{place}": place for place in range(MOST_FEATURES)}
    decided(served, features=most)
    assert shown_features(served, "1")[0] == most
    assert served.get("/schedulers/default/tasks/1").text.count("<dt>") >= MOST_FEATURES


def test_the_description_shows_features_by_an_example(served: Served) -> None:
    found = served.get("/v1/openapi.json").json()["components"]["schemas"]["Decide"]["properties"]["features"]
    [example] = found["examples"]
    assert f"{LONGEST_FEATURES} bytes" in found["description"]
    assert found["anyOf"][0]["maxProperties"] == MOST_FEATURES
    decided(served, features=example)
    assert shown_features(served, "1")[0] == example


def test_what_is_forgotten_is_in_no_answer_and_on_no_page(served: Served) -> None:
    decided(served, features={"name": SECRET, "age": 36}, key="visit")
    served.post(f"{ONE}/tasks/1/fail", {"cost": 2, "reason": f"no such patient: {SECRET}"})
    again = served.post(f"{ONE}/tasks/1/again", {"after": 0}).json()["attempt"]
    served.post(f"{ONE}/tasks/1/fail", {"cost": 2, "reason": f"not found: {SECRET}", "attempt": again})
    pages = ("/schedulers/default", "/schedulers/default/tasks/1", *(f"{ONE}/{path}" for path in (
        "tasks", "tasks/1", "tasks/1/explanation", "summary", "export", "export?format=csv")), "/v1/audit")  # fmt: skip
    before = served.get(f"{ONE}/summary").json()
    assert SECRET in served.get(f"{ONE}/tasks/1").text
    for _ in range(2):
        assert served.post(f"{ONE}/forget", {"tasks": ["1", "1"]}).json() == {"taken": 1}
        assert [path for path in pages if SECRET in served.get(path).text] == []
    after = served.get(f"{ONE}/summary").json()
    assert (after["reward"], after["cost"], after["failed"]) == (before["reward"], before["cost"], before["failed"])
    assert not any(shown_features(served, "1"))
    assert served.post(f"{ONE}/rebuild", {}).json() == {"same": True}
    assert decided(served, key="visit")["task"] == "1"
    [entry, *_] = served.get("/v1/audit").json()
    assert (entry["action"], entry["scheduler"], entry["details"]) == ("tasks forgotten", "default", {"tasks": ["1"]})


def test_all_are_forgotten_or_none(served: Served) -> None:
    for _ in range(3):
        decided(served, features=KNOWN)
    for tasks, status in ((["1", "77"], 404), (["1", "x"], 404), ([], 400), ([1], 400), (["1"] * 1001, 400)):
        answer = served.post(f"{ONE}/forget", {"tasks": tasks})
        assert answer.status_code == status, answer.text
    assert shown_features(served, "1")[0] == KNOWN
    assert served.get("/v1/audit").json() == []
    assert served.post(f"{ONE}/forget", {"tasks": ["1", "3"]}).json() == {"taken": 2}
    assert [shown_features(served, id)[0] for id in "123"] == [None, KNOWN, None]


def test_an_explanation_that_nobody_came_back_for_is_forgotten_too(served: Served) -> None:
    decided(served, features=KNOWN)
    dispatchers = served.app.app.find(ONE)[0]["GET"].service.dispatchers
    before = served.loop.create_future()  # an answer that is being worked on
    served.loop.call_soon_threadsafe(dispatchers.shared.__setitem__, ("explain", "default", "1"), before)
    assert served.post(f"{ONE}/forget", {"tasks": ["1"]}).status_code == 200
    assert served.get(f"{ONE}/tasks/1/explanation").json()["features"] is None


def test_reasons_are_kept_or_not_as_the_settings_say(served: Served) -> None:
    assert served.get(ONE).json()["store_reasons"] is True
    for place, keep in enumerate((True, False, True), 1):
        changed = served.ask("PATCH", ONE, json={"store_reasons": keep})
        assert changed.json()["store_reasons"] is keep
        decided(served)
        served.post(f"{ONE}/tasks/{place}/fail", {"cost": 1, "reason": SECRET})
        assert served.get(f"{ONE}/tasks/{place}").json()["reason"] == (SECRET if keep else None)
    assert served.ask("PATCH", ONE, json={"store_reasons": "no"}).status_code == 400
    assert served.ask("PATCH", ONE, json={"overhead": 1}).json()["store_reasons"] is True
    quiet = "/v1/schedulers/quiet"
    assert served.ask("PUT", quiet, json={"store_reasons": False}).json()["store_reasons"] is False
    assert served.ask("PUT", quiet, json={"store_reasons": False}).status_code == 200
    assert served.ask("PUT", quiet, json={"store_reasons": True}).status_code == 422
    assert served.ask("PUT", quiet, json={}).json()["store_reasons"] is False


def test_the_log_comes_in_small_portions_whatever_features_it_has() -> None:
    """Quotes and backslashes, which are written twice, in names that are as long as they may be."""
    longest = {f"{place}": '"' * 90 + "\\" * 10 for place in range(18)}
    kind, key = "\x1f" * 200, "\x1f" * 197
    with Scheduler() as scheduler:
        for place in range(100):
            task = scheduler.decide(kind, ["\x1f" * 30], features=longest, key=f"{key}{place:03}")
            task.fail(1.0, "\x1f" + "ü" * 199)
        for format in ("jsonl", "csv"):
            portions = list(in_portions(scheduler, format, 0))
            assert len(portions) > 2
            assert max(map(len, portions)) < 256 << 10
            assert b"".join(portions).count(b"failed") == 100


def test_only_an_admin_has_something_forgotten(sqlite: str) -> None:
    store = open_store(sqlite)
    scopes = {scope: bearer(create_token(store, scope, [scope])) for scope in ("decide", "report", "read", "admin")}
    store.close()
    served = Served(sqlite)
    try:
        body = {"kind": "a", "options": [1], "features": KNOWN}
        assert served.post(f"{ONE}/tasks", body, headers=scopes["decide"]).status_code == 200
        statuses = {
            scope: served.post(f"{ONE}/forget", {"tasks": ["1"]}, headers=scopes[scope]).status_code for scope in scopes
        }
        assert statuses == {"decide": 403, "report": 403, "read": 403, "admin": 200}
        [entry, *_] = served.get("/v1/audit", headers=scopes["admin"]).json()
        assert (entry["token"], entry["action"]) == ("admin", "tasks forgotten")
    finally:
        served.close()


def use(scheduler: Scheduler | Client) -> list[Any]:
    """The same lines for both."""
    known = KNOWN | {"age": None, "size": np.float32(0.5), "count": np.int64(7), "fast": np.bool_(False)}
    first = scheduler.decide("sat", ["a", "b"], features=known, key="one")
    with scheduler.task("sat", ["a", "b"], features={"name": SECRET}) as second:
        second.reward, second.cost = 1.0, 2.0
    third = scheduler.decide("sat", ["a", "b"], features={"name": SECRET})
    third.fail(1.0, SECRET)
    scheduler.forget(third.id, int(second.id))
    scheduler.forget(second)
    scheduler.forget()
    scheduler.change(store_reasons=False)
    scheduler.decide("sat", ["a", "b"], features={}).fail(1.0, SECRET)
    errors = []
    for features in ({"a": [1]}, {"a": float("inf")}, {1: 2}, {"": 1}, {"a": "x" * 5000}, "text", [("a", 1)], {"a": 1j},
                     {str(place): 1 for place in range(300)}):  # fmt: skip
        with pytest.raises(BadTask) as found:
            scheduler.decide("sat", ["a"], features=features)  # type: ignore[arg-type]
        errors.append(str(found.value))
    with pytest.raises(UnknownTask) as unknown:
        scheduler.forget("77777")
    lines = [(line.features, line.reason) for line in scheduler.latest(9)]
    return [lines, errors, scheduler.explain(first).features, str(unknown.value), scheduler.rebuild()]


def test_a_client_takes_and_refuses_the_same_features(service: ServiceProcess) -> None:
    with Scheduler(name="same", seed=3) as scheduler, Client(service.url, name="same", seed=3) as client:
        here, there = use(scheduler), use(client)
    assert there == here
    assert here[0][-1][0] == KNOWN | {"size": 0.5, "count": 7, "fast": False}
    assert SECRET not in str(here)


def test_a_client_decides_many_with_features_or_without(service: ServiceProcess) -> None:
    with Client(service.url, name="many", policy="ratio-imed") as client:
        client.decide_many([("a", [1, 2]), ("a", [1, 2], {"size": 3}), ("a", [1, 2], None)])
        assert [line.features or None for line in client.latest(3)] == [None, {"size": 3}, None]


def test_a_client_makes_a_scheduler_that_keeps_no_reasons(service: ServiceProcess) -> None:
    with Client(service.url, name="kept", store_reasons=False) as client:
        task = client.decide("a", [1], features=KNOWN)
        task.fail(1.0, SECRET)
        assert client.tasks([task.id])[0].reason is None


@pytest.mark.parametrize("scope", ["decide", "report"])
def test_a_client_is_told_which_scope_it_needs(tmp_path_factory: pytest.TempPathFactory, scope: str) -> None:
    store = store_at(tmp_path_factory.mktemp("scopes"))
    opened = open_store(store)
    token = create_token(opened, "worker", [scope])
    opened.close()
    needed = pytest.raises(NotAllowed, match=f"has scope {scope}; this needs admin")
    with ServiceProcess(store) as running, Client(running.url, token) as client, needed:
        client.forget("1")


def test_what_features_led_to_is_in_every_answer(sqlite: str) -> None:
    with Scheduler(sqlite, seed=3) as scheduler:
        solve(scheduler, 400)
        last = next(task for task in range(400, 0, -1) if scheduler.explain(task).by_features.effect == "choice")
        known, mine = scheduler.explain(last), scheduler.summary()
    assert known.by_features is not None
    assert mine.features is not None
    served = Served(sqlite)
    try:
        why = served.get(f"{ONE}/tasks/{last}/explanation").json()
        assert why["why"] == known.why
        assert why["by_features"] == asdict(known.by_features)
        assert msgspec.convert(why, Explanation).by_features == known.by_features
        summary = served.get(f"{ONE}/summary").json()
        assert msgspec.convert(summary, Summary).features == mine.features
        page = served.get(f"/schedulers/default/tasks/{last}").text
        assert f"more than the usual {known.by_features.usual}" in page
        assert "clauses" in page.split('class="why"')[1].split("</p>")[0]
        page = served.get("/schedulers/default").text
        assert "Which features matter" in page
        assert "<b>" not in page
        lines = dict(line.rsplit(" ", 1) for line in served.get("/metrics").text.splitlines() if "feature" in line)
    finally:
        served.close()
    shares = {one.feature: one.share for one in mine.features.shares}
    assert float(lines['worthwhile_feature_share{scheduler="default",feature="clauses"}']) == shares["clauses"]
    assert float(lines['worthwhile_features_believed{scheduler="default"}']) == mine.features.believed
    assert float(lines['worthwhile_features_expected_gain{scheduler="default"}']) == mine.features.expected_gain


def test_without_features_no_panel_and_no_metric(served: Served) -> None:
    decided(served)
    served.post(f"{ONE}/tasks/1/report", {"reward": 1, "cost": 2})
    assert "Which features matter" not in served.get("/schedulers/default").text
    assert 'feature="' not in served.get("/metrics").text
    decided(served, features={"size": 1})
    assert "1 report with features" not in served.get("/schedulers/default").text
    served.post(f"{ONE}/tasks/2/report", {"reward": 1, "cost": 2})
    assert "1 report with features: nothing tells tasks apart yet" in served.get("/schedulers/default").text
