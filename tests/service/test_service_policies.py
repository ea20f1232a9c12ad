"""A service runs no code but its own and what its operator has allowed: real processes, modules that leave a trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from service_process import ServiceProcess, store_at
from waiting import NET
from worthwhile import Client
from worthwhile.cli.main import main
from worthwhile.errors import NotAllowed

OWN = """
from pathlib import Path
from worthwhile.policies.imed import RatioImed
Path(__file__).with_suffix(".imported").touch()
class Mine(RatioImed): pass
"""
MAKE = "import sys; from worthwhile import Scheduler; Scheduler(sys.argv[1], 'made here', sys.argv[2]).close()"

CHANGE = "import sys; from worthwhile import Scheduler; Scheduler(sys.argv[1]).change(sys.argv[2])"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's own; beside it, a file appears when it is imported."""
    path = tmp_path / "own_policy.py"
    path.write_text(OWN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    return path


def make_scheduler(store: str, trace: Path) -> None:
    """By a process on this machine, which may use any policy."""
    subprocess.run([sys.executable, "-c", MAKE, store, "own_policy:Mine"], check=True)
    trace.unlink()


def test_a_request_cannot_have_a_module_imported(tmp_path: Path, module: Path) -> None:
    with ServiceProcess(store_at(tmp_path), "--no-access-log") as service:
        for method, name in (("PUT", "new"), ("PATCH", "default")):
            for policy in ("own_policy:Mine", "own_policy:Mine,half_life=5", "own_policy:", "pip.__main__:X"):
                url = f"{service.url}/v1/schedulers/{name}"
                answer = httpx.request(method, url, json={"policy": policy}, timeout=NET)
                assert (answer.status_code, answer.json()["title"]) == (403, "NotAllowed")
                assert "--allow-policy" in answer.json()["detail"]
        with pytest.raises(NotAllowed, match="imports only what it was started with"):
            Client(service.url, name="new", policy="own_policy:Mine")
        assert service.get("/v1/schedulers").json() == {"schedulers": ["default"]}
    assert not module.with_suffix(".imported").exists()


def test_a_policy_that_is_in_the_store_is_imported_only_if_it_is_allowed(tmp_path: Path, module: Path) -> None:
    store, trace = store_at(tmp_path), module.with_suffix(".imported")
    make_scheduler(store, trace)
    body = {"kind": "a", "options": [1]}
    with ServiceProcess(store, "--no-access-log") as service:
        refused = service.post("/v1/schedulers/made%20here/tasks", body)
        assert (refused.status_code, refused.json()["title"]) == (403, "NotAllowed")
        page = service.get("/schedulers/made%20here")
        assert (page.status_code, "--allow-policy own_policy:Mine" in page.text) == (403, True)
        assert not trace.exists()
    with ServiceProcess(store, "--no-access-log", "--allow-policy", "own_policy:Mine") as service:
        assert service.post("/v1/schedulers/made%20here/tasks", body).status_code == 200
        with Client(service.url, name="new", policy="own_policy:Mine,half_life=5") as client:
            assert client.decide("a", [1]).option == 1
        assert trace.exists()


def test_a_policy_that_another_process_sets_meanwhile_is_not_imported_either(tmp_path: Path, module: Path) -> None:
    store, trace = store_at(tmp_path), module.with_suffix(".imported")
    with ServiceProcess(store, "--no-access-log") as service:
        assert service.post("/v1/schedulers/default/tasks", {"kind": "a", "options": [1]}).status_code == 200
        subprocess.run([sys.executable, "-c", CHANGE, store, "own_policy:Mine"], check=True)
        trace.unlink()
        assert service.post("/v1/schedulers/default/tasks", {"kind": "a", "options": [1]}).status_code == 403
        assert not trace.exists()
        subprocess.run([sys.executable, "-c", CHANGE, store, "ratio-imed"], check=True)
        assert service.post("/v1/schedulers/default/tasks", {"kind": "a", "options": [1]}).status_code == 200


def test_what_cannot_be_allowed_is_said_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, words in (("ratio-imed", "allowed anyway"), ("nowhere:Mine", "cannot import")):
        assert main(["serve", "--store", store_at(tmp_path), "--port", "0", "--allow-policy", path]) == 2
        assert words in capsys.readouterr().err
