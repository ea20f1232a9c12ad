"""Faces: the reference has every public name, command, address, setting and metric, and the site every page."""

from __future__ import annotations

import argparse
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worthwhile
from worthwhile import testing
from worthwhile.cli.main import parser
from worthwhile.live.settings import Settings
from worthwhile.live.trials import TrialSettings
from worthwhile.service.metrics import Metrics
from worthwhile.service.routes import ENDPOINTS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import reference_pages  # noqa: E402
import site_pages  # noqa: E402


def text(name: str) -> str:
    return (ROOT / "docs/reference" / f"{name}.md").read_text(encoding="utf-8")


def sections(name: str) -> dict[str, str]:
    """What stands below each heading of a reference page."""
    parts = re.split(r"^#{2,3} (.+)$", text(name), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_the_reference_is_what_the_code_says(name: str) -> None:
    assert text(name) == reference_pages.PAGES[name](), "run: make reference"


def test_every_public_name_and_method_is_in_the_reference() -> None:
    shown = sections("api")
    names = [name for name in dir(worthwhile) if not name.startswith("__")]
    assert len(names) > 25
    methods = [
        f"{name}.{method}"
        for name in names
        if inspect.isclass(kind := getattr(worthwhile, name))
        for method in vars(kind)
        if not method.startswith("_") and (inspect.isfunction(getattr(kind, method)))
    ]
    kits = [f"testing.{name}" for name in testing.__all__]
    assert not {*names, *methods, *kits} - shown.keys()


def commands(command: Any, before: str = "worthwhile") -> Iterator[tuple[str, Any]]:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield f"{before} {name}", inner
                yield from commands(inner, f"{before} {name}")


def test_every_command_and_each_of_its_options_is_in_the_reference() -> None:
    shown = sections("cli")
    found = dict(commands(parser()))
    assert len(found) > 20
    assert found.keys() <= shown.keys()
    for name, command in found.items():
        options = {option for option in command._option_string_actions if option not in ("-h", "--help")}
        assert not {option for option in options if f"`{option}`" not in shown[name]}, name


def test_every_address_is_in_the_reference() -> None:
    rows = sections("http")["Addresses"]
    assert not [each for each in ENDPOINTS if f"| `{each.method} {each.path}` |" not in rows]


def test_every_setting_is_in_the_reference_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.*?) \|", text("settings"), re.M)
    told = set(inspect.signature(worthwhile.Scheduler).parameters)
    assert told | set(Settings._fields) | set(TrialSettings._fields) <= {name for name, _ in rows}
    assert not [name for name, meaning in rows if not meaning]


def test_every_metric_is_in_the_reference() -> None:
    counts = Metrics()
    counts.add("GET", "/", 200, 0.1)
    with worthwhile.Scheduler() as scheduler:
        names = re.findall(r"^# TYPE (\w+)", counts.text([scheduler.summary()]), re.M)
    assert len(names) > 20
    assert not [name for name in names if f"| `{name}` |" not in text("metrics")]


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    pages = [page.relative_to(ROOT).as_posix() for page in site_pages.pages()]
    assert sorted(listed) == sorted(pages)


def test_what_a_page_links_to_is_part_of_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_pages, "OUT", tmp_path)
    site_pages.main()
    assert "class DolRm" in (tmp_path / "src/worthwhile/policies/dol_rm.py.md").read_text(encoding="utf-8")
    assert (tmp_path / "docs/dashboard.png").exists()
    page = (tmp_path / "docs/paper-to-code.md").read_text(encoding="utf-8")
    assert "(../src/worthwhile/policies/dol_rm.py.md)" in page


@pytest.mark.slow
@pytest.mark.parametrize(("link", "fails"), [("b.md#there", False), ("c.md", True), ("b.md#nowhere", True)])
def test_a_broken_link_fails_the_build_of_the_site(link: str, fails: bool, tmp_path: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"^nav:\n(?:  .*\n)+", "", settings, flags=re.M), encoding="utf-8")
    pages = tmp_path / "build/docs"
    pages.mkdir(parents=True)
    (pages / "index.md").write_text(f"# A\n\n[a link]({link})\n")
    (pages / "b.md").write_text("# B\n\n## There\n")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    assert fails or (tmp_path / "build/site/index.html").exists()


def test_every_list_begins_after_an_empty_line_or_the_site_would_not_show_it_as_one() -> None:
    for page in site_pages.pages():
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        assert not re.findall(r"^(?!\* |\d+\. | ).*\S.*\n(?:\* |1\. ).*", prose, re.M), page.name
