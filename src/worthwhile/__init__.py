"""Worthwhile: an online task scheduler that learns to earn the most reward per cost.

The flow is the paper's loop: tasks **arrive**, a policy **chooses** an option, **feedback** brings its reward and cost,
the policy **learns**. Read `learning.py` and `decision.py` for the paper's two modules, `policies/dol_rm.py` for its
algorithm, `policies/imed.py` for the default that needs no tuning, `loop.py` for one run and `simulator.py` for many.
For real tasks, `scheduler.py` decides and takes reports, `stores/` keeps them, `worker.py` runs them, and `service/` is
the scheduler over HTTP.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Any

from worthwhile.errors import Error
from worthwhile.problem import Noise, Problem, read_problem, seven_kinds, two_kinds

__version__ = version("worthwhile")

logging.getLogger(__name__).addHandler(logging.NullHandler())

LAZY = {
    "Environment": "worthwhile.simulation.environments",
    "drifting": "worthwhile.simulation.environments",
    "replay": "worthwhile.simulation.environments",
    "synthetic": "worthwhile.simulation.environments",
    "simulate": "worthwhile.simulation.simulator",
    "Results": "worthwhile.simulation.results",
    "solve": "worthwhile.optimum",
    "theorem_bound": "worthwhile.optimum",
    "random_problem": "worthwhile.random_problems",
    "Decision": "worthwhile.decision",
    "Rng": "worthwhile.rng",
    "Scheduler": "worthwhile.live.scheduler",
    "Client": "worthwhile.service.client",
    "Task": "worthwhile.live.task",
    "LocalExecutor": "worthwhile.execution.executors",
    "Arrival": "worthwhile.execution.arrivals",
    "Outcome": "worthwhile.execution.metering",
    "measure": "worthwhile.execution.metering",
    "work": "worthwhile.execution.worker",
}


def __getattr__(name: str) -> Any:
    """Load the rest of the public names when they are first used."""
    if name not in LAZY:
        raise AttributeError(f"module 'worthwhile' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(LAZY[name]), name)


__all__ = [  # without Client, which needs an extra
    "Arrival",
    "Decision",
    "Environment",
    "Error",
    "LocalExecutor",
    "Noise",
    "Outcome",
    "Problem",
    "Results",
    "Rng",
    "Scheduler",
    "Task",
    "__version__",
    "drifting",
    "measure",
    "random_problem",
    "read_problem",
    "replay",
    "seven_kinds",
    "simulate",
    "solve",
    "synthetic",
    "theorem_bound",
    "two_kinds",
    "work",
]
