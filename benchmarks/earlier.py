"""The default of an earlier commit as a policy of today's simulator: it meets the same worlds, task by task."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from worthwhile.rng import uniform

ROOT = Path(__file__).parents[1]
MODULE, POLICY = "policies.imed", "RatioImed"  # where the default has always been


def commit_of(name: str) -> str:
    """The commit that a branch, a tag or the beginning of its number means now."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "--short=12", f"{name}^{{commit}}"]
    found = subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
    if not found:
        raise SystemExit(f"no commit {name!r} in {ROOT}; git log lists them")
    return found


@contextmanager
def earlier_default(commit: str) -> Iterator[str]:
    """An import path for `simulate`, valid inside the block."""
    with tempfile.TemporaryDirectory() as folder:
        package = f"worthwhile_{commit}"
        write_package(commit, Path(folder) / package)
        sys.path.insert(0, folder)
        try:
            module = import_module(f"{package}.{MODULE}")
            adapt(module)
            yield f"{package}.{MODULE}:{POLICY}"
        finally:
            sys.path.remove(folder)


def adapt(module: Any) -> None:
    """What has changed since in what the simulator gives a policy, or takes from it."""
    module.uniform = uniform  # the fields of an Rng had other names
    for name, value in list(vars(module).items()):
        if callable(getattr(value, "function", None)):  # wrapped for live schedulers: machine code wants it bare
            setattr(module, name, value.function)


def write_package(commit: str, folder: Path) -> None:
    """The package as it was, under another name: two of the same name cannot be imported."""
    git = ["git", "-C", str(ROOT), "archive", commit, "src/worthwhile"]
    archive = subprocess.run(git, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        for member in files:
            if member.name.endswith(".py"):
                path = folder / Path(member.name).relative_to("src/worthwhile")
                path.parent.mkdir(parents=True, exist_ok=True)
                text = files.extractfile(member).read().decode()  # type: ignore[union-attr]
                path.write_text(text.replace("worthwhile.", f"{folder.name}."), encoding="utf-8")
