"""The recipe for CI: the action's steps and the scripts below them, run as a CI would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from waiting import NET
from worthwhile import Scheduler
from worthwhile.live.explain import TaskLine

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "integrations" / "github-action"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """Of a step on a runner."""
    own = {"GITHUB_OUTPUT": f"{folder}/output", "GITHUB_PATH": f"{folder}/path", "GITHUB_ACTION_PATH": str(FOLDER)}
    return {**os.environ, **own, "RUNNER_TEMP": str(folder), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


def use(folder: Path, **given: str) -> dict[str, str]:
    """What `uses:` does with the action: the outputs of its steps."""
    inputs = {name: str(given.get(name, one.get("default", ""))) for name, one in ACTION["inputs"].items()}
    output = folder / "output"
    output.unlink(missing_ok=True)
    for step in ACTION["runs"]["steps"]:
        if is_wanted(step, inputs):
            env = environment(folder) | {name: filled(text, inputs) for name, text in step["env"].items()}
            script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            subprocess.run(script, env=env, check=True, timeout=NET, cwd=folder)
    return dict(line.split("=", 1) for line in output.read_text().splitlines()) if output.exists() else {}


def is_wanted(step: Mapping[str, Any], inputs: Mapping[str, str]) -> bool:
    condition = step.get("if")
    if condition is None:
        return True
    name, sign = re.fullmatch(r"\$\{\{ inputs\.(\w+) (==|!=) '' \}\}", condition).groups()  # type: ignore[union-attr]
    return (inputs[name] == "") == (sign == "==")


def filled(text: str, inputs: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)


def tasks(folder: Path) -> list[TaskLine]:
    with Scheduler(folder / "ci.db", create=False) as scheduler:
        return scheduler.latest()


@pytest.mark.parametrize(
    ("outcome", "state"), [("success", "reported"), ("failure", "failed"), ("cancelled", "cancelled"), ("", "running")]
)
def test_the_action_decides_and_reports_minutes_and_outcome(tmp_path: Path, outcome: str, state: str) -> None:
    decided = use(tmp_path, store="ci.db", kind="tests", options="small large", usual="small")
    assert decided["task"] == "1"
    assert decided["option"] in ("small", "large")
    began = str(int(time.time()) - 600)
    assert use(tmp_path, store="ci.db", task="1", began=began, outcome=outcome, rate="0.5") == {}
    [line] = tasks(tmp_path)
    assert (line.kind, line.option, line.state) == ("tests", decided["option"], state)
    assert line.cost is None if state in ("cancelled", "running") else 5.0 <= (line.cost or 0.0) < 5.0 + NET / 60
    assert line.reason == ("failure" if state == "failed" else None)


def test_without_a_scheduler_the_usual_option_is_taken_and_the_build_goes_on(tmp_path: Path) -> None:
    decided = use(tmp_path, store="none/ci.db", kind="tests", options="1 2", usual="2")
    assert (decided["task"], decided["option"]) == ("", "2")
    assert use(tmp_path, store="none/ci.db", task="", began=decided["began"], outcome="success") == {}
    assert use(tmp_path, store="none/ci.db", task="7", began=decided["began"], outcome="success") == {}
    with pytest.raises(subprocess.CalledProcessError):  # there is nothing to go on with
        use(tmp_path, store="none/ci.db", kind="tests", options="1 2")


def test_the_recipe_of_the_page_runs_in_any_shell(tmp_path: Path) -> None:
    [recipe] = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    (tmp_path / "Makefile").write_text("test:\n\tmkdir made-with-$(WORKERS)\n")
    (tmp_path / "integrations").symlink_to(FOLDER.parent)
    own = {"STORE": "ci.db", "CI_JOB_STATUS": "failed"}
    subprocess.run(["sh", "-euc", recipe], env=environment(tmp_path) | own, check=True, timeout=NET, cwd=tmp_path)
    [line] = tasks(tmp_path)
    assert (line.state, line.reason) == ("failed", "failed")
    assert (tmp_path / f"made-with-{line.option}").is_dir()


def test_the_workflow_of_the_page_gives_the_action_what_it_takes() -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    workflow = yaml.safe_load(text)
    steps = [step for job in workflow["jobs"].values() for step in job["steps"] if "github-action" in str(step)]
    needed = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert [needed <= step["with"].keys() <= ACTION["inputs"].keys() for step in steps] == [True, True]
    assert set(re.findall(r"steps\.size\.outputs\.(\w+)", text)) <= ACTION["outputs"].keys()
    assert [output["value"] for output in ACTION["outputs"].values()] == [
        f"${{{{ steps.decide.outputs.{name} }}}}" for name in ACTION["outputs"]
    ]
