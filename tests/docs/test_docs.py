"""Faces: the documentation runs, and it is complete."""

from __future__ import annotations

import argparse
import inspect
import re
import runpy
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import worthwhile
from worthwhile import errors, testing
from worthwhile.cli.main import main, parser
from worthwhile.policies.registry import LIST

ROOT = Path(__file__).parents[2]
DOCS = sorted(ROOT.glob("docs/**/*.md"))
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")), *DOCS]
EVERYTHING = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
ERRORS = [name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, errors.Error)]
COMMANDS: dict[str, Any] = next(
    action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
)


class Block(NamedTuple):
    """A fenced block: its language, the file it stands for (or nothing), its text and where it starts."""

    language: str
    file: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order; `<!-- not run -->` on the line before one leaves it out."""
    content = page.read_text(encoding="utf-8")
    for found in re.finditer(r"(<!-- not run.*? -->\n)?^```(\w+) *(\S*)\n(.*?)^```$", content, re.S | re.M):
        skipped, language, file, text = found.groups()
        if not skipped:
            yield Block(language, file, text, content.count("\n", 0, found.start(4)))


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of a console block, without prompts and comments."""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            yield shlex.split(line[2:], comments=True)


def exit_code(arguments: list[str]) -> int:
    """What `worthwhile …` ends with."""
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def run(page: Path, block: Block, folder: Path, names: dict[str, Any]) -> None:
    """Run a block as its reader would; blocks of a page build on one another."""
    if block.language == "python":
        code = "\n" * block.line + block.text
        exec(compile(code, str(page), "exec"), names)
    elif block.language == "console":
        for command in commands(block):
            if command[0] == "worthwhile":
                assert exit_code(command[1:]) == 0, f"{page.name}: {shlex.join(command)}"
    elif block.file:
        (folder / block.file).write_text(block.text, encoding="utf-8")


def slug(heading: str) -> str:
    """The anchor that a heading gets: lower case, punctuation dropped, blanks turned into hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.replace("*", "").lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)}


@cache
def own_files() -> set[str]:
    """The files of the project, without what is built and installed in it."""
    tops = [top for top in ROOT.iterdir() if top.name not in (".venv", ".git", "build", "dist", "results")]
    files = [file for top in tops for file in ([top] if top.is_file() else top.rglob("*.*"))]
    return {file.relative_to(ROOT).as_posix() for file in files}


def said(name: str) -> bool:
    """Whether the documentation has a word."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", EVERYTHING) is not None


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for example in ROOT.glob("examples/*.*"):
        shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names: dict[str, Any] = {}
    for block in blocks(page):
        run(page, block, tmp_path, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_shown_in_full_are_the_files_in_examples(page: Path) -> None:
    for block in blocks(page):
        if block.file:
            assert block.text == (ROOT / "examples" / block.file).read_text(encoding="utf-8")


def test_every_make_target_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    mentioned = set(re.findall(r"(?:`|\$ )make ([a-z]+)", EVERYTHING))
    assert {"demo", "test", "quick", "bench", "soak"} <= mentioned <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_mentioned_exists(page: Path) -> None:
    made = {block.file for block in blocks(page)}
    for name in re.findall(
        r"`(?:python )?((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|cff|c))`", page.read_text(encoding="utf-8")
    ):
        assert name in made or any(f"/{path}".endswith(f"/{name}") for path in own_files()), f"{page.name}: {name}"


@pytest.mark.parametrize("name", LIST)
def test_every_policy_is_documented(name: str) -> None:
    rows = (ROOT / "docs/policies.md").read_text(encoding="utf-8").splitlines()
    assert any(row.startswith(f"| [`{name}`](#") for row in rows)


@pytest.mark.parametrize("name", LIST)
def test_every_policy_that_needs_nothing_is_documented_so(name: str) -> None:
    rows = (ROOT / "docs/policies.md").read_text(encoding="utf-8").splitlines()
    told = next(row.split("|")[2] for row in rows if row.startswith(f"| [`{name}`]"))
    policy = LIST[name].type
    assert told.strip().startswith("nothing") == (set(policy._fields) == set(policy._field_defaults))


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_documented(name: str) -> None:
    assert f"\n| `{name}` |" in (ROOT / "docs/errors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_its_options_are_documented(command: str) -> None:
    assert f"worthwhile {command}" in EVERYTHING
    for option in COMMANDS[command]._option_string_actions:
        assert not option.startswith("--") or said(option), f"{command} {option}"


def test_every_public_name_is_documented() -> None:
    kit = ["check_policy", "check_environment", "check_store"]
    assert all(hasattr(testing, name) for name in kit)
    missing = [name for name in [*worthwhile.__all__, "Client", *kit] if not said(name)]
    assert not missing


def test_the_architecture_shows_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = "\n".join(contracts[0]["layers"]).replace("worthwhile.", "")
    assert f"\n```text\n{layers}\n```\n" in (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_the_architecture_names_the_modules_that_a_task_passes_through() -> None:
    walked = " → ".join(runpy.run_path(str(ROOT / "benchmarks" / "walk.py"))["pair"]().modules)
    shown = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert f"\n```text\n{walked}\n```\n" in shown, f"it shows other modules than {walked}"


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {worthwhile.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {worthwhile.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
