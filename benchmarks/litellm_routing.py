"""LiteLLM's router on recorded answers: a scheduler's choice beside LiteLLM's own strategies, and what asking costs.

    python benchmarks/litellm_routing.py routerbench_0shot_1pct.parquet

The table has a row for every prompt and model: `task_type`, `item_id`, `option`, `reward`, `cost` in dollars. Prompts
come in random order, with replacement; every one costs `--added-cost` on top, for what is around the call. Fails if the
99th percentile of the time that a request takes grows by more than 5 ms when it is decided.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from worthwhile import Scheduler

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from worthwhile.integrations.litellm import Routing

OWN = ("simple-shuffle", "least-busy", "latency-based-routing", "cost-based-routing")  # LiteLLM's
LIMIT = 0.005  # seconds, added to the 99th percentile
TOKENS = 1000  # of a call that costs what its model does on average

Rows = Mapping[tuple[str, str], tuple[float, float]]  # (item, option): reward, cost


class Recorded(litellm.CustomLLM):  # type: ignore[misc]
    """Answers with what was recorded: the reward and the cost as its text, the cost also as so many tokens."""

    def __init__(self, rows: Rows, prices: Mapping[str, float]) -> None:
        super().__init__()
        self.rows, self.prices = rows, prices

    async def acompletion(self, model: str, messages: Any, model_response: Any, *more: Any, **named: Any) -> Any:
        reward, cost = self.rows[messages[0]["content"], model]
        model_response.choices[0].message.content = f"{reward} {cost}"
        tokens = max(1, round(cost / self.prices[model]))
        model_response.usage = litellm.Usage(prompt_tokens=tokens, completion_tokens=0, total_tokens=tokens)
        return model_response


def router(options: list[str], prices: Mapping[str, float], strategy: str) -> Any:
    """All models in two groups, of which a scheduler decides one."""
    models = [
        {
            "model_name": group,
            "litellm_params": {"model": f"recorded/{option}", "input_cost_per_token": prices[option]},
            "model_info": {"option": option},
        }
        for option in options
        for group in ("answers", "undecided")
    ]
    return litellm.Router(models, routing_strategy=strategy, num_retries=0)


async def ask(to: Any, task: tuple[str, str], group: str = "answers") -> tuple[float, float]:
    """Reward and cost of a prompt."""
    kind, item = task
    answer = await to.acompletion(group, [{"role": "user", "content": item}], metadata={"kind": kind})
    await GLOBAL_LOGGING_WORKER.flush()
    return said(answer)


async def replayed(to: Any, tasks: list[tuple[str, str]]) -> tuple[float, float]:
    """All tasks, one after the other."""
    outcomes = [await ask(to, task) for task in tasks]
    return sum(reward for reward, _ in outcomes), sum(cost for _, cost in outcomes)


async def timed(to: Any, tasks: list[tuple[str, str]]) -> dict[str, list[float]]:
    """How long requests take, decided and undecided ones in turns."""
    took: dict[str, list[float]] = {"answers": [], "undecided": []}
    for task in tasks:
        for group, times in took.items():
            began = time.perf_counter()
            await to.acompletion(group, [{"role": "user", "content": task[1]}], metadata={"kind": task[0]})
            times.append(time.perf_counter() - began)
            await GLOBAL_LOGGING_WORKER.flush()
    return took


async def all_reported(scheduler: Scheduler) -> None:
    """LiteLLM tells of a call in the background, a moment later."""
    GLOBAL_LOGGING_WORKER.start()
    while any(task.state == "running" for task in scheduler.latest(1000)):
        await asyncio.sleep(0.01)


def said(answer: Any) -> tuple[float, float]:
    """Reward and cost."""
    reward, cost = answer.choices[0].message.content.split()
    return float(reward), float(cost)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table")
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--timed", type=int, default=500, help="requests to be timed")
    parser.add_argument("--added-cost", type=float, default=0.001, help="dollars a prompt")
    arguments = parser.parse_args()
    table = pd.read_parquet(arguments.table)
    rows = {(row.item_id, row.option): (row.reward, row.cost) for row in table.itertuples()}
    prices = (table.groupby("option")["cost"].mean() / TOKENS).to_dict()
    items, options = table[["task_type", "item_id"]].drop_duplicates().values.tolist(), sorted(prices)
    tasks = random.Random(1).choices([(kind, item) for kind, item in items], k=arguments.tasks)
    litellm.custom_provider_map = [{"provider": "recorded", "custom_handler": Recorded(rows, prices)}]
    litellm.suppress_debug_info = True

    def tell(name: str, reward: float, cost: float) -> None:
        mean, whole = 1000 * cost / len(tasks), cost + arguments.added_cost * len(tasks)
        print(f"{name:24} {reward / len(tasks):6.1%} right, {mean:.4f} m$ a prompt, {reward / whole:6.1f} right per $")

    for strategy in OWN:
        tell(strategy, *asyncio.run(replayed(router(options, prices, strategy), tasks)))
    with tempfile.TemporaryDirectory() as folder:
        missed = [compared(store, tasks, options, prices, arguments, tell) for store in ("memory://", f"{folder}/m.db")]
    return int(any(missed))


def compared(store: str, tasks: Any, options: list[str], prices: Any, arguments: Any, tell: Any) -> bool:
    """What a scheduler earns and adds; whether that is too long."""
    with Scheduler(store, overhead=arguments.added_cost, seed=1) as scheduler:
        routing = Routing(scheduler, groups=["answers"], judge=lambda _, answer: said(answer)[0], features=None)
        litellm.callbacks, models = [routing], router(options, prices, "simple-shuffle")
        tell(f"worthwhile, {store.rpartition('.')[2][:6]}", *asyncio.run(replayed(models, tasks)))
        took = asyncio.run(timed(models, tasks[: arguments.timed]))
        asyncio.run(all_reported(scheduler))
        litellm.callbacks = []
        routing.close()
    decided, undecided = (np.quantile(took[group], [0.5, 0.99]) for group in took)
    added = 1000 * (decided - undecided)
    print(f"{'':24} added to a request: median {added[0]:.2f} ms, p99 {added[1]:.2f} ms")
    return bool(added[1] > 1000 * LIMIT)


if __name__ == "__main__":
    sys.exit(main())
