"""Who may do what, for how long and with which schedulers; sessions of browsers; and the audit log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from test_service import Served, bearer, logged_in

from tampering import execute
from waiting import wait_until
from worthwhile.cli.main import main
from worthwhile.live.checking import find_damage
from worthwhile.live.stores import open_store
from worthwhile.live.stores.base import Transaction
from worthwhile.service import tokens
from worthwhile.service.tokens import create_token, hash_of, revoke_token

HOUR = 3600.0
TASK = {"kind": "a", "options": [1]}
Make = Callable[..., str]


def change_store(url: str, work: Callable[[Transaction], Any]) -> Any:
    store = open_store(url)
    try:
        return store.transact(work)
    finally:
        store.close()


@pytest.fixture
def make(durable: str) -> Make:
    """Makes a token."""

    def made(*values: Any, **more: Any) -> str:
        store = open_store(durable)
        token = create_token(store, *values, **more)
        store.close()
        return token

    return made


@pytest.fixture
def served(durable: str, make: Make) -> Iterator[Served]:
    """A service with two schedulers, for all of which there is a token."""
    admin = bearer(make("all", ["admin"]))
    running = Served(durable)
    for name in ("mine", "other"):
        assert running.ask("PUT", f"/v1/schedulers/{name}", json={}, headers=admin).status_code == 200
    running.http.headers = {"host": "localhost"}
    yield running
    running.close()


def notice(served: Served) -> None:
    """Have the tokens read again before the next request."""
    served.run(read_again(served))


async def read_again(served: Served) -> None:
    by_method, _ = served.app.app.find("/v1/health")
    await by_method["GET"].service.refresh()


def test_a_token_for_some_schedulers_is_for_no_others(served: Served, make: Make) -> None:
    mine = bearer(make("some", ["admin"], schedulers=["mine"]))
    notice(served)
    assert served.post("/v1/schedulers/mine/tasks", TASK, headers=mine).status_code == 200
    for method, path, body in (
        ("POST", "/v1/schedulers/other/tasks", TASK),
        ("GET", "/v1/schedulers/other", None),
        ("GET", "/v1/schedulers/other/export", None),
        ("PATCH", "/v1/schedulers/other", {"overhead": 1}),
        ("PUT", "/v1/schedulers/new", {}),
        ("GET", "/v1/schedulers/nobody", None),  # no way to find out which there are
    ):
        more = {} if body is None else {"json": body}
        refused = served.ask(method, path, headers=mine, **more)
        assert (refused.status_code, refused.json()["title"]) == (403, "NotAllowed"), path
        assert "is not for scheduler" in refused.json()["detail"]
    assert served.get("/v1/schedulers", headers=mine).json() == {"schedulers": ["mine"]}
    metrics = served.get("/metrics", headers=mine).text
    assert 'scheduler="mine"' in metrics
    assert 'scheduler="other"' not in metrics
    assert {entry["scheduler"] for entry in served.get("/v1/audit", headers=mine).json()} == {"mine"}


def test_the_dashboard_shows_a_token_its_schedulers_only(served: Served, make: Make) -> None:
    cookie = {"cookie": logged_in_after(served, make("eyes", ["read"], schedulers=["mine"]))}
    assert "other" not in served.get("/", headers=cookie).text
    assert served.get("/schedulers/mine", headers=cookie).status_code == 200
    assert served.get("/schedulers/mine/live", headers=cookie).status_code == 200
    for path in ("/schedulers/other", "/schedulers/other/live", "/schedulers/other/tasks/1"):
        refused = served.get(path, headers=cookie)
        assert refused.status_code == 403
        assert "is not for scheduler" in refused.text


def test_a_page_of_ours_may_change_what_an_admin_may(served: Served, make: Make) -> None:
    """With the browser's cookie, if the browser says that the page is ours; for what admins alone may do."""
    admin = {"cookie": logged_in_after(served, make("boss", ["admin"], schedulers=["mine"]))}
    reader = {"cookie": logged_in_after(served, make("eyes", ["read"]))}
    ours, by_fetch = {"origin": "http://localhost"}, {"sec-fetch-site": "same-origin"}

    def retire(option: str, headers: dict[str, str], name: str = "mine") -> int:
        return served.ask("POST", f"/v1/schedulers/{name}/retire", json={"option": option}, headers=headers).status_code

    assert [retire("a", admin | own) for own in (ours, by_fetch)] == [200, 200]
    assert retire("b", admin) == 401  # nobody says from where
    assert retire("b", admin | {"origin": "http://elsewhere"}) == 403
    assert retire("b", admin | {"sec-fetch-site": "cross-site"} | ours) == 403
    assert retire("b", admin | ours, "other") == 403
    assert retire("b", reader | ours) == 403
    task = served.ask("POST", "/v1/schedulers/mine/tasks", json=TASK, headers=admin | ours)
    assert task.status_code == 401  # a cookie is for pages; programs have tokens
    facts = served.get("/v1/schedulers/mine", headers=admin).json()
    assert facts["retired"] == [{"option": "a", "kind": None}]
    entries = served.get("/v1/audit", headers=admin).json()
    assert [entry["token"] for entry in entries if entry["action"] == "option retired"] == ["boss", "boss"]


@pytest.mark.parametrize("scope", ["read", "admin"])
def test_buttons_are_there_for_admins_only(served: Served, make: Make, scope: str) -> None:
    cookie = {"cookie": logged_in_after(served, make("who", [scope]))}
    page = served.get("/schedulers/mine/settings", headers=cookie).text
    assert ('id="confirm"' in page) == ('class="button main"' in page) == (scope == "admin")
    assert ("disabled" in page) == ("To change them, log in with" in page) == (scope == "read")


def test_people_get_pages_and_programs_get_problems(served: Served, make: Make) -> None:
    """Whatever is not there, or not allowed."""
    cookie = {"cookie": logged_in_after(served, make("eyes", ["read"], schedulers=["mine"]))}
    person = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, status in (("/nowhere", 404), ("/schedulers/other", 403), ("/schedulers/mine?kinds=0", 400)):
        page = served.get(path, headers=cookie | person)
        assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert "Back to the start" in page.text
        assert "content-security-policy" in page.headers
    for path, headers in (("/nowhere", {}), ("/v1/nowhere", person), ("/v1/schedulers/other", person)):
        assert served.get(path, headers=headers).headers["content-type"] == "application/problem+json"


def logged_in_after(served: Served, token: str) -> str:
    notice(served)
    return logged_in(served, token)


def test_a_token_whose_time_is_over_is_refused(served: Served, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    token = make("guest", ["read"], lifetime=HOUR)
    cookie = {"cookie": logged_in_after(served, token)}
    for headers in (bearer(token), cookie):
        assert served.get("/v1/schedulers", headers=headers).status_code == 200
    now = time.time()
    monkeypatch.setattr("worthwhile.service.auth.time.time", lambda: now + HOUR + 1)
    for headers in (bearer(token), cookie):
        refused = served.get("/v1/schedulers", headers=headers)
        assert (refused.status_code, refused.json()["title"]) == (401, "AccessDenied")
        assert "token 'guest' expired at" in refused.json()["detail"]
    assert served.post("/login", {"token": token}).status_code == 401
    page = served.get("/schedulers/mine", headers=cookie)
    assert page.status_code == 401
    assert "expired at" in page.text


def test_a_session_is_no_token_and_ends(served: Served, make: Make, durable: str, monkeypatch: Any) -> None:
    token = make("eyes", ["read"])
    notice(served)
    answer = served.post("/login", {"token": token}, headers={"x-forwarded-proto": "https"})
    cookie = answer.headers["set-cookie"]
    assert token not in cookie
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200; Secure")
    secret = cookie.partition("=")[2].partition(";")[0]
    [row] = change_store(durable, lambda tx: tx.sessions())
    assert (row.hash, row.token) == (hash_of(secret), "eyes")
    session = {"cookie": f"worthwhile={secret}"}
    assert served.get("/v1/schedulers", headers=session).status_code == 200
    assert served.get("/v1/schedulers", headers=bearer(secret)).status_code == 401
    now = time.time()
    with monkeypatch.context() as later:
        later.setattr("worthwhile.service.auth.time.time", lambda: now + 12 * HOUR)
        assert served.get("/v1/schedulers", headers=session).status_code == 401
    assert served.ask("POST", "/logout", json={}, headers=session).status_code == 200
    assert served.get("/v1/schedulers", headers=session).status_code == 401
    assert change_store(durable, lambda tx: tx.sessions()) == []


def test_revoking_a_token_ends_its_sessions(
    served: Served, make: Make, durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.service.auth.REFRESH_AFTER", 0.1)
    session = {"cookie": logged_in_after(served, make("eyes", ["read"]))}
    store = open_store(durable)
    revoke_token(store, "eyes")
    assert store.transact(lambda tx: tx.sessions()) == []
    store.close()
    wait_until(lambda: served.get("/v1/schedulers", headers=session).status_code == 401, "the tokens to be read again")


def test_a_session_holds_at_every_service_on_the_store_at_once(served: Served, make: Make, durable: str) -> None:
    other = Served(durable)
    try:
        session = {"cookie": logged_in_after(served, make("eyes", ["read"]))}
        assert other.get("/schedulers/mine", headers=session).status_code == 200
    finally:
        other.close()


def test_old_sessions_are_forgotten(served: Served, make: Make, durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_SESSIONS", 3)
    token = make("eyes", ["read"])
    sessions = [{"cookie": logged_in_after(served, token)} for _ in range(5)]
    assert len(change_store(durable, lambda tx: tx.sessions())) == 3
    notice(served)
    statuses = [served.get("/v1/schedulers", headers=session).status_code for session in sessions]
    assert statuses == [401, 401, 200, 200, 200]


def test_the_audit_log_says_who_changed_what(served: Served, make: Make, durable: str) -> None:
    boss, reader = bearer(make("boss", ["admin"])), bearer(make("eyes", ["read"]))
    notice(served)
    one = "/v1/schedulers/mine"
    served.ask("PATCH", one, json={"policy": "kind-greedy"}, headers=boss)
    served.post(f"{one}/retire", {"option": 1}, headers=boss)
    for _ in range(2):  # the second time, there is nothing to be done
        served.post(f"{one}/restore", {"option": 1}, headers=boss)
    served.post(f"{one}/announce", {"kinds": ["a"], "options": [1, 2]}, headers=boss)
    row = {"key": "k", "kind": "a", "option": 1, "reward": 1, "cost": 1}
    served.post(f"{one}/history", {"rows": [row]}, headers=boss)
    served.ask("PATCH", one, json={"policy": "nothing"}, headers=boss)  # refused, so it changes nothing
    served.post(f"{one}/tasks", TASK, headers=boss)
    gone = served.post(f"{one}/forget", {"tasks": ["2"]}, headers=boss)
    assert gone.status_code == 200, gone.text
    store = open_store(durable)
    revoke_token(store, "eyes")
    store.close()
    entries = served.get("/v1/audit?count=9", headers=boss).json()[::-1]
    assert [(entry["token"], entry["action"], entry["scheduler"]) for entry in entries] == [
        (None, "token created", None),
        (None, "token created", None),
        ("boss", "settings changed", "mine"),
        ("boss", "option retired", "mine"),
        ("boss", "option restored", "mine"),
        ("boss", "names announced", "mine"),
        ("boss", "history imported", "mine"),
        ("boss", "tasks forgotten", "mine"),
        (None, "token revoked", None),
    ]
    unchanged = {"overhead": None, "failed_reward": None, "store_reasons": None, "baseline": None, "holdout": None}
    unchanged |= {"explore": None, "guard": None, "guard_error": None}
    unchanged |= {"goal": None, "floor": None, "budget": None, "reward_unit": None, "cost_unit": None}
    assert entries[2]["details"] == {"policy": "kind-greedy", **unchanged}
    assert entries[6]["details"] == {"rows": 1, "new": 1}
    assert abs(entries[-1]["time"] - time.time()) < HOUR
    assert served.get("/v1/audit", headers=reader).status_code in (401, 403)


def test_tokens_and_the_audit_log_at_the_command_line(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    def worthwhile(*arguments: str) -> str:
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    only = ("--scheduler", "training", "--scheduler", "ü", "--expires", "30d")
    token = worthwhile("token", "create", sqlite, "guest", "--scope", "read", *only).strip()
    assert token.startswith("ww_")
    [row] = json.loads(worthwhile("token", "list", sqlite, "--json"))["tokens"]
    assert (row["name"], row["schedulers"], row["revoked"]) == ("guest", ["training", "ü"], False)
    assert abs(row["expires"] - time.time() - 30 * 24 * HOUR) < HOUR
    assert "training, ü" in worthwhile("token", "list", sqlite)
    worthwhile("token", "revoke", sqlite, "guest")
    entries = json.loads(worthwhile("audit", sqlite, "--json"))["audit"]
    assert [entry["action"] for entry in entries] == ["token revoked", "token created"]
    assert entries[1]["details"]["scopes"] == ["read"]
    text = worthwhile("audit", sqlite, "--count", "1")
    assert "command line" in text
    assert "token created" not in text
    assert token not in text
    for wrong in ("30", "d", "1.5h", "0d", "", "30 d", "²d"):
        assert main(["token", "create", sqlite, "x", "--scope", "read", f"--expires={wrong}"]) == 2
        assert "as in 90m, 12h, 30d or 8w" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [
        "update tokens set hash = 'é' where name = 'mine'",
        "update tokens set schedulers = '{' where name = 'mine'",
        "update tokens set schedulers = '5' where name = 'mine'",
        "delete from sessions",
    ],
)
def test_a_damaged_token_is_of_no_use_and_harms_nobody(served: Served, make: Make, durable: str, damage: str) -> None:
    mine, others = make("mine", ["decide"]), make("others", ["decide"])
    execute(durable, damage)
    notice(served)
    path = "/v1/schedulers/mine/tasks"
    assert served.post(path, TASK, headers=bearer(others)).status_code == 200
    assert served.post(path, TASK).status_code == 401
    if "tokens" in damage:
        assert served.post(path, TASK, headers=bearer(mine)).status_code == 401
        assert [found.table for found in find_damage(durable).damage] == ["tokens"]
