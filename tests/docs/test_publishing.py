"""Faces: what the package index, a forge and somebody who cites it are told."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import worthwhile

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
BUILD = runpy.run_path(str(ROOT / "hatch_build.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOURCE = "https://forge.test/someone/worthwhile"
TARGETS = re.compile(r"\]\(([^)]+)\)")


def test_on_an_index_every_link_and_image_is_absolute_and_leads_to_a_file_of_that_version() -> None:
    shown = BUILD["for_index"](README, SOURCE, "1.2.3")
    targets = TARGETS.findall(shown)
    assert len(targets) == len(TARGETS.findall(README)) > 30
    for target in targets:
        found = re.fullmatch(rf"{SOURCE}/(blob|raw)/v1\.2\.3/([^#]+)(#.*)?", target)
        assert found is not None, target
        assert (ROOT / found[2]).exists(), target
        assert (found[1] == "raw") == found[2].endswith(".png")


def test_without_a_published_source_nothing_on_an_index_leads_nowhere() -> None:
    shown = BUILD["for_index"](README, "", "1.2.3")
    assert not TARGETS.findall(shown)
    assert "What is your job?" in shown
    assert "| **training length**: how many epochs?" in shown


@pytest.mark.parametrize("source", ["", SOURCE])
def test_urls_are_said_only_as_far_as_they_are_known(source: str) -> None:
    told = BUILD["urls"](source, "1.2.3")
    assert all(url.startswith((SOURCE, "https://arxiv.org/abs/")) for url in told.values())
    assert ("Source" in told) == bool(source)


def test_the_supported_pythons_are_those_that_are_tried() -> None:
    said = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    assert said == set(tests["jobs"]["core"]["strategy"]["matrix"]["python"])
    assert PROJECT["requires-python"] == f">={min(said, key=lambda name: int(name[2:]))}"


def test_workflows_are_valid_and_call_targets_that_exist() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *WORKFLOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    called = {name for file in WORKFLOWS for name in re.findall(r"\bmake ([a-z]+)", file.read_text(encoding="utf-8"))}
    assert {"lint", "test", "quick", "docs"} <= called <= targets


def test_the_citation_has_what_its_format_asks_for_and_says_what_the_package_says() -> None:
    cited: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert all({"type", "title", "authors"} <= each.keys() for each in cited["references"])
    assert cited["authors"] == PROJECT["authors"]
    assert (cited["version"], cited["license"]) == (worthwhile.__version__, PROJECT["license"])
    assert cited["title"].lower().endswith(PROJECT["description"].lower())
