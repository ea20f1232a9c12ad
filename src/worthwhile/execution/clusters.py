"""Where tasks run, by name: processes of this machine, a Dask cluster, a Ray cluster; each as an `Executor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from worthwhile.errors import BadParameter, MissingExtra, did_you_mean
from worthwhile.execution.executors import LocalExecutor

SYSTEMS = ("local", "dask", "ray")
RETRIES = 2  # times that a cluster runs a task again whose worker was lost


@contextmanager
def executor_on(system: str = "local", address: str | None = None, slots: int | None = None) -> Iterator[Executor]:
    """An executor on the cluster at an address; without one, on a cluster of so many local processes.

    >>> with executor_on("local", slots=1) as executor:
    ...     executor.submit(pow, 2, 5).result()
    32
    """
    if system not in SYSTEMS:
        raise BadParameter(f"no system {system!r} to run tasks on; {did_you_mean(system, SYSTEMS)}")
    if system == "local":
        if address is not None:
            raise BadParameter(f"address {address!r}: local processes have none; name dask or ray")
        with LocalExecutor(slots) as executor:
            yield executor
    else:
        with dask_executor(address, slots) if system == "dask" else ray_executor(address, slots) as executor:
            yield executor


@contextmanager
def dask_executor(address: str | None, slots: int | None) -> Iterator[Executor]:
    """Dask's own executor, told how many tasks the cluster runs at once."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtra("a Dask cluster", "dask") from None
    with ExitStack() as stack:
        cluster: Any = address
        if address is None:
            workers = {"n_workers": slots or os.cpu_count() or 1, "threads_per_worker": 1, "dashboard_address": None}
            # without a dashboard it still listens for one: on any port, as 8787 may be another cluster's
            listen = {"dashboard_address": "127.0.0.1:0"}
            cluster = stack.enter_context(distributed.LocalCluster(**workers, scheduler_kwargs=listen))
        client = stack.enter_context(distributed.Client(cluster))
        executor = client.get_executor(pure=False, retries=RETRIES)  # pure: equal calls would be made only once
        executor.slots = max(1, sum(client.nthreads().values()))
        yield executor


@contextmanager
def ray_executor(address: str | None, slots: int | None) -> Iterator[Executor]:
    """A Ray cluster; one that ran before keeps running afterwards."""
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise MissingExtra("a Ray cluster", "ray") from None
    imports = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}  # its workers import what we can
    here = {"num_cpus": slots or os.cpu_count() or 1, "include_dashboard": False, "runtime_env": imports}
    try:
        ray.init(address=address, log_to_driver=False, **({} if address is not None else here))
    except ConnectionError as error:
        remedy = "start one with `ray start --head`; if it wants a token, set RAY_AUTH_TOKEN here and there"
        raise BadParameter(f"address {address!r}: {error}; {remedy}") from None
    try:
        yield RayExecutor(ray)
    finally:
        ray.shutdown()


class RayExecutor(Executor):
    """Ray's tasks as futures of the standard library."""

    def __init__(self, ray: Any) -> None:
        self.slots = int(ray.cluster_resources().get("CPU", 1))
        self.call = ray.remote(max_retries=RETRIES)(called)

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Have it called by a worker of the cluster."""
        future: Future[Any] = self.call.remote(call, arguments, named).future()
        return future


def called(call: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return call(*arguments, **named)
