"""What the tests of the experiments share."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from small_experiments import is_complete, run_everything, write_two_tables


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def two_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recorded tables."""
    return write_two_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def everything(shared_folder: Path) -> Path:
    """All experiments, run by whichever worker comes first, while others wait."""
    folder, tables = shared_folder / "everything", shared_folder / "two-tables"
    with open(shared_folder / "everything.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete(folder):
            run_everything(folder, write_two_tables(tables))
    return folder
