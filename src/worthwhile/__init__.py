"""Worthwhile: an online task scheduler that learns to earn the most reward per cost.

The flow is the paper's loop: tasks **arrive**, a policy **chooses** an option, **feedback** brings its reward and cost,
the policy **learns**. Read `learning.py` and `decision.py` for the paper's two modules, `policies/dol_rm.py` for its
algorithm, `policies/imed.py` for the default that needs no tuning, `simulation/loop.py` for one run and
`simulation/runs.py` for many. For real tasks, `live/scheduler.py` decides and takes reports, `live/stores/` keeps
them, `execution/worker.py` runs them, and `service/` is the scheduler over HTTP.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

logging.getLogger(__name__).addHandler(logging.NullHandler())

if TYPE_CHECKING:  # the public names as a type checker sees them; below, the same names as Python finds them
    from worthwhile.decision import Decision as Decision
    from worthwhile.errors import Error as Error
    from worthwhile.execution.arrivals import Arrival as Arrival
    from worthwhile.execution.executors import LocalExecutor as LocalExecutor
    from worthwhile.execution.metering import Outcome as Outcome
    from worthwhile.execution.metering import measure as measure
    from worthwhile.execution.worker import work as work
    from worthwhile.goals.goal import Goal as Goal
    from worthwhile.live.async_scheduler import AsyncScheduler as AsyncScheduler
    from worthwhile.live.asynchronous import AsyncTask as AsyncTask
    from worthwhile.live.scheduler import Scheduler as Scheduler
    from worthwhile.live.task import Task as Task
    from worthwhile.optimum import solve as solve
    from worthwhile.problem import Noise as Noise
    from worthwhile.problem import Problem as Problem
    from worthwhile.problem import seven_kinds as seven_kinds
    from worthwhile.problem import two_kinds as two_kinds
    from worthwhile.problem_files import read_problem as read_problem
    from worthwhile.random_problems import random_problem as random_problem
    from worthwhile.rng import Rng as Rng
    from worthwhile.service.async_client import AsyncClient as AsyncClient
    from worthwhile.service.client import Client as Client
    from worthwhile.simulation.environments.base import Environment as Environment
    from worthwhile.simulation.environments.replay import replay as replay
    from worthwhile.simulation.environments.synthetic import drifting as drifting
    from worthwhile.simulation.environments.synthetic import synthetic as synthetic
    from worthwhile.simulation.results import Results as Results
    from worthwhile.simulation.simulator import simulate as simulate
    from worthwhile.theory import lower_bound as lower_bound
    from worthwhile.theory import theorem_bound as theorem_bound

    __version__: str
else:
    HOMES = {
        "decision": "Decision",
        "errors": "Error",
        "execution.executors": "LocalExecutor",
        "execution.metering": "Outcome measure",
        "execution.arrivals": "Arrival",
        "execution.worker": "work",
        "goals.goal": "Goal",
        "live.async_scheduler": "AsyncScheduler",
        "live.asynchronous": "AsyncTask",
        "live.scheduler": "Scheduler",
        "live.task": "Task",
        "optimum": "solve",
        "problem": "Noise Problem seven_kinds two_kinds",
        "problem_files": "read_problem",
        "random_problems": "random_problem",
        "rng": "Rng",
        "service.async_client": "AsyncClient",
        "service.client": "Client",
        "simulation.environments.base": "Environment",
        "simulation.environments.replay": "replay",
        "simulation.environments.synthetic": "drifting synthetic",
        "simulation.results": "Results",
        "simulation.simulator": "simulate",
        "theory": "lower_bound theorem_bound",
    }
    PUBLIC = {name: f"{__name__}.{home}" for home, names in HOMES.items() for name in names.split()}
    NEED_EXTRA = {"AsyncClient", "Client"}  # import * works without it, too
    __all__ = [name for name in ("__version__", *PUBLIC) if name not in NEED_EXTRA]

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used: `import worthwhile` alone loads not even NumPy."""
        if name == "__version__":
            from importlib.metadata import version

            value = version(__name__)
        elif name in PUBLIC:
            from importlib import import_module

            value = getattr(import_module(PUBLIC[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, without the modules that happen to be loaded."""
        return [*PUBLIC, *(name for name in (*globals(), "__version__") if name.startswith("__"))]
