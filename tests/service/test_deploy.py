"""Running it for real: the files in deploy/, and back-ups that are made under load and restored."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from service_load import Load
from service_process import ServiceProcess, store_at
from waiting import NET, wait_until
from worthwhile import Client, Scheduler
from worthwhile.cli.main import main
from worthwhile.live.stores import open_store
from worthwhile.service.server import DRAIN
from worthwhile.service.tokens import create_token

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONTAINER = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
ONE = "/v1/schedulers/default"
MISSING = "no {}; `make soak` installs it on Debian"


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=f"{sys.prefix}/bin:/usr/sbin")
    assert found is not None, MISSING.format(name)
    return found


def words(instruction: str) -> list[str]:
    """What an instruction of the container file says, which is JSON."""
    found = re.search(rf"^{instruction} (?:CMD )?(\[.*\])$", CONTAINER, re.M)
    assert found is not None
    said: list[str] = json.loads(found[1])
    return said


def token_in(store: str, *scopes: str) -> str:
    opened = open_store(store)
    try:
        return create_token(opened, "first", scopes)
    finally:
        opened.close()


def serve_as_in_the_container(worthwhile: list[str], folder: Path, port: int) -> None:
    """Refused without a token; with one, it answers and its health check agrees."""
    command = [*worthwhile, *words("ENTRYPOINT")[1:], *words("CMD"), "--port", str(port)]
    refused = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=NET)
    assert (refused.returncode, "there is no token yet" in refused.stderr) == (2, True)
    create = [*worthwhile, "token", "create", "tasks.db", "first", "--scope", "admin"]
    token = subprocess.run(create, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    health = [word.replace("8080", str(port)) for word in words("HEALTHCHECK")]
    assert health[0] == "python"
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as running:
        try:
            with Client(f"http://127.0.0.1:{port}", token, patience=NET) as client:
                client.decide("a", [1]).report(1.0, 2.0)
                assert client.summary().ratio == 0.5
            subprocess.run([sys.executable, *health[1:]], check=True, timeout=NET)
        finally:
            running.terminate()
    assert subprocess.run([sys.executable, *health[1:]], check=False, stderr=subprocess.DEVNULL).returncode == 1


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.slow
def test_the_containers_command_serves(tmp_path: Path) -> None:
    serve_as_in_the_container([sys.executable, "-m", "worthwhile"], tmp_path, free_port())


@pytest.mark.long
def test_the_containers_steps_install_what_its_command_needs(tmp_path: Path) -> None:
    """Its steps in an empty environment: nothing but what it copies, and what pip brings."""
    subprocess.run([program("hadolint"), str(DEPLOY / "Containerfile")], check=True)
    source = tmp_path / "source"
    source.mkdir()
    for copied in re.findall(r"^COPY (?!--from)(.+) /source", CONTAINER, re.M):
        for name in copied.split():
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, source / name)
    venv.create(tmp_path / "clean", with_pip=True)
    paths = {"/wheels": str(tmp_path / "wheels"), "/source": str(source)}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = f"{tmp_path}/clean/bin:{os.environ['PATH']}"
    for step in re.findall(r"^RUN (.+)$", CONTAINER, re.M):
        ours = step.partition(" && useradd")[0]
        for path, instead in paths.items():
            ours = ours.replace(path, instead)
        subprocess.run(ours, shell=True, check=True, env=environment, stdout=subprocess.DEVNULL)
    folder = tmp_path / "home"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        serve_as_in_the_container([f"{tmp_path}/clean/bin/worthwhile"], folder, free_port())


def unit() -> str:
    return (DEPLOY / "worthwhile.service").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_units_command_serves_and_stops_in_time(tmp_path: Path) -> None:
    found = re.search(r"^ExecStart=/opt/worthwhile/bin/worthwhile serve --store (\S+) (.*)$", unit(), re.M)
    assert found is not None
    assert found[1] == "sqlite:////var/lib/worthwhile/tasks.db"
    with ServiceProcess(store_at(tmp_path), *shlex.split(found[2])) as service:
        assert service.post(f"{ONE}/tasks", {"kind": "a", "options": [1]}).status_code == 200
        service.stop()
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit())[1]) > DRAIN  # type: ignore[index]


@pytest.mark.long
def test_systemd_has_nothing_to_say_against_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "worthwhile.service"
    copy.write_text(unit().replace("/opt/worthwhile/bin/worthwhile", sys.executable), encoding="utf-8")
    found = subprocess.run([program("systemd-analyze"), "verify", copy], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")
    safe = [program("systemd-analyze"), "security", "--offline=true", "--threshold=20", copy]
    assert subprocess.run(safe, stdout=subprocess.DEVNULL, check=False).returncode == 0


def answers(caller: httpx.Client) -> bool:
    try:
        return caller.get("/v1/health").is_success
    except httpx.TransportError:
        return False


@contextlib.contextmanager
def behind_nginx(folder: Path, service: ServiceProcess) -> Iterator[httpx.Client]:
    """A client of the service through our configuration of nginx, with a certificate for localhost."""
    port, key, certificate = free_port(), folder / "key.pem", folder / "certificate.pem"
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([program("openssl"), *make, *names], check=True, stderr=subprocess.DEVNULL)
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for ours, instead in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("tasks.example.com", "localhost"),
        ("/etc/ssl/tasks.pem", str(certificate)),
        ("/etc/ssl/tasks.key", str(key)),
        ("127.0.0.1:8080", f"127.0.0.1:{service.port}"),
    ):
        assert site.count(ours) == 1
        site = site.replace(ours, instead)
    (folder / "site.conf").write_text(site, encoding="utf-8")
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; user root;\nevents {{}}\n"
        f"http {{ access_log off; include {folder}/site.conf; }}\n",
        encoding="utf-8",
    )
    with subprocess.Popen([program("nginx"), "-p", folder, "-c", folder / "nginx.conf"]) as nginx:
        way = httpx.HTTPTransport(ssl.create_default_context(cafile=certificate), local_address="127.0.0.2")
        try:
            with httpx.Client(base_url=f"https://localhost:{port}", transport=way, timeout=NET) as caller:
                wait_until(lambda: answers(caller), "nginx")
                yield caller
        finally:
            nginx.terminate()


@pytest.mark.long
def test_behind_nginx_everything_works_as_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    token = token_in(store_at(tmp_path), "admin")
    with ServiceProcess(store_at(tmp_path)) as service, behind_nginx(tmp_path, service) as caller:
        assert caller.get("/v1/ready").status_code == 200
        assert caller.get(ONE).status_code == 401
        with Client(str(caller.base_url), token) as client:
            for _ in range(4):
                tasks = client.decide_many([("kind", [1, 2])] * 5000)
                client.report_many([(task.id, 0.5, 2.0) for task in tasks])
            assert client.export(tmp_path / "log.jsonl") == 20_000
        origin = {"origin": str(caller.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
        logged_in = caller.post("/login", json={"token": token}, headers=origin)
        assert logged_in.status_code == 200
        assert "; Secure" in logged_in.headers["set-cookie"]
        page = caller.get("/")
        assert (page.status_code, "20,000" in page.text) == (200, True)
        assert caller.get("/schedulers/default/live").status_code == 200
        assert (
            caller.post("/login", json={"token": token}, headers={"origin": "https://evil.example"}).status_code == 403
        )
        large = caller.post(f"{ONE}/tasks", content=b" " * 1_100_000, headers={"content-type": "application/json"})
        assert large.status_code == 413
        direct = {"x-forwarded-for": "203.0.113.9", "authorization": f"Bearer {token}"}
        assert caller.get(ONE, headers=direct).status_code == 200
        service.stop()
        seen = {json.loads(line)["client"] for line in service.lines if line.startswith("{")}
        assert seen == {"127.0.0.1", "127.0.0.2"}  # nginx says who called, not the caller


def backed_up(scheduler: Scheduler) -> tuple[int, int]:
    """A restored store is whole: what it knows is what its log says."""
    assert scheduler.rebuild()
    found = scheduler.summary()
    assert found.bad_entries == 0
    task = scheduler.decide("kind", [1, 5, 10])
    task.report(1.0, 2.0)
    return found.tasks, found.reports


@pytest.mark.slow
@pytest.mark.parametrize("way", ["backup", "vacuum into"])
def test_a_copy_of_a_sqlite_file_made_under_load_is_whole(tmp_path: Path, way: str) -> None:
    store, copies = store_at(tmp_path), [tmp_path / f"copy {number}.db" for number in range(3)]
    with ServiceProcess(store, "--no-access-log") as service:
        load = Load([service.url], 4)
        for copy in copies:
            load.await_more(10)
            with contextlib.closing(sqlite3.connect(tmp_path / "service.db", timeout=NET)) as source:
                if way == "backup":
                    with contextlib.closing(sqlite3.connect(copy)) as target:
                        source.backup(target)
                else:
                    source.execute("vacuum into ?", [str(copy)])
        load.finish()
    counts = []
    for copy in copies:
        assert main(["rebuild", f"sqlite:///{copy}", "--check"]) == 0
        with Scheduler(f"sqlite:///{copy}", create=False) as scheduler:
            counts.append(backed_up(scheduler))
    assert 0 < counts[0][1] < counts[2][1] <= len(load.reported)


@pytest.mark.slow
def test_a_dump_of_postgresql_made_under_load_is_whole(server: Any, postgres: str, tmp_path: Path) -> None:
    schema, dump = postgres.rpartition("%3D")[2], tmp_path / "dump"
    with ServiceProcess(postgres, "--no-access-log") as service:
        load = Load([service.url], 4)
        load.await_more(10)
        tool = server.bin_path / "pg_dump"
        subprocess.run([tool, server.get_uri(), "--schema", schema, "--format", "custom", "--file", dump], check=True)
        load.await_more(10)
        load.finish()
    name = f"restored_{os.getpid()}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"create database {name}")
    uri = server.get_uri(database=name)
    subprocess.run([server.bin_path / "pg_restore", "--dbname", uri, dump], check=True)
    restored = f"{uri}&options=-csearch_path%3D{schema}"
    assert main(["rebuild", restored, "--check"]) == 0
    with Scheduler(restored, create=False) as scheduler:
        tasks, reports = backed_up(scheduler)
        assert 0 < reports < len(load.reported)
        assert tasks >= reports
