"""Faces: what the page of goals shows is what the commands on it answer, and its picture is theirs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from PIL import Image
from test_docs import ROOT, blocks, commands

from worthwhile.cli.main import main
from worthwhile.goals.goal import Goal, goal_of

PAGE = ROOT / "docs" / "goals.md"


def test_the_answers_on_the_page_are_those_of_its_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.toml").write_text((ROOT / "examples/models.toml").read_text(encoding="utf-8"), encoding="utf-8")
    for block in blocks(PAGE):
        for command in commands(block) if block.language == "console" else ():
            assert main(command[1:]) == 0
    said = capsys.readouterr().out
    shown = [block.text for block in blocks(PAGE) if block.language == "text"]
    assert len(shown) == 3
    for part in (shown[0], *shown[1].splitlines(), *shown[2].splitlines()):
        assert part in said


def test_the_picture_is_that_of_the_command_beside_it() -> None:
    command = next(
        line[2:] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.endswith("docs/goals.png")
    )
    with Image.open(ROOT / "docs" / "goals.png") as image:
        about = json.loads(image.info["Description"])
    assert shlex.split(about["command"])[1:] == shlex.split(command)[1:]
    assert Goal.from_json(about["goal"]) == goal_of("cost", floor=0.8, budget=0.7)
