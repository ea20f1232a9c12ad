"""A TypeScript client, generated from what a real service says of itself, checked by tsc, run by node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service_process import ServiceProcess
from waiting import NET

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "client.ts"
PACKAGES = Path(sys.prefix) / "npm" / "node_modules"  # where `make integrations` puts them
CHECK = (
    "--strict --noEmit --skipLibCheck --target es2022 --lib es2023,dom --module nodenext --allowImportingTsExtensions"
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(f"{tmp_path_factory.mktemp('service')}/tasks.db") as running:
        yield running


@pytest.fixture(scope="module")
def folder(service: ServiceProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, as one that follows the page has it."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "node_modules").symlink_to(PACKAGES)
    run(folder, "openapi-typescript", f"{service.url}/v1/openapi.json", "--output", "worthwhile.ts")
    text = EXAMPLE.read_text(encoding="utf-8")
    assert "http://127.0.0.1:8080" in text
    (folder / "client.ts").write_text(text.replace("http://127.0.0.1:8080", service.url), encoding="utf-8")
    return folder


def run(folder: Path, tool: str, *words: str, code: int = 0) -> str:
    """What one of npm's programs prints."""
    command = [str(PACKAGES / ".bin" / tool), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NET, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_it_decides_reports_fails_and_explains(folder: Path, service: ServiceProcess) -> None:
    run(folder, "tsc", *CHECK.split(), "client.ts")
    printed = [json.loads(line) for line in run(folder, "tsx", "client.ts").splitlines()]
    assert [(line["state"], line["reward"], line["cost"]) for line in printed] == [
        ("reported", 0.91, 3.2),
        ("failed", None, 1.5),
    ]
    assert printed[1]["reason"] == "out of memory"
    assert all(line["option"] in (1, 5, 10) and line["why"] for line in printed)
    stored = service.get(f"/v1/schedulers/default/tasks/{printed[0]['task']}").json()
    assert stored["features"] == {"rain": 0.2, "season": "spring"}


def test_the_types_say_what_is_wrong(folder: Path) -> None:
    text = (folder / "client.ts").read_text(encoding="utf-8")
    mistakes = {
        "const body = { kind, options,": ("const body = { options,", "Property 'kind' is missing"),
        "task: first.task }": ("task: 17 }", "'number' is not assignable to type 'string'"),
        "{ option, state,": ("{ option, status: state,", "Property 'status' does not exist"),
        "/tasks/{task}/fail": ("/tasks/{task}/failed", "/tasks/{task}/failed"),
        "for (const task of": ("if (second.state === 'lost') throw 1;\nfor (const task of", "no overlap"),
    }
    for right, (wrong, _) in mistakes.items():
        assert right in text
        text = text.replace(right, wrong)
    (folder / "wrong.ts").write_text(text, encoding="utf-8")
    said = run(folder, "tsc", *CHECK.split(), "wrong.ts", code=2)
    missing = [complaint for _, complaint in mistakes.values() if complaint not in said]
    assert not missing, said


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "integrations" / "typescript.md").read_text(encoding="utf-8")
    assert f"```typescript client.ts\n{EXAMPLE.read_text(encoding='utf-8')}```" in page
