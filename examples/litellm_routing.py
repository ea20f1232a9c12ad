"""Which model answers? LiteLLM's router asks the scheduler. Mock models stand in for real ones, so no keys are needed.

Needs `pip install 'worthwhile[litellm]'`. Three models, of which the middle one is out of order; answers must be right
four times in five, as cheaply as possible. Whether one was is found out after it was given.

Prints, more or less:

    200 questions, 5 calls failed: 82% right, 80% wanted
    openai/large: 65% of the calls
    openai/small: 32% of the calls
    openai/medium: 2% of the calls, benched
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

from worthwhile import Scheduler

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # do not look for today's prices

import litellm

from worthwhile.integrations.litellm import Routing, task_of

RIGHT = {"small": 0.55, "medium": 0.9, "large": 0.95}  # nobody tells the scheduler
PRICE = {"small": 2e-7, "medium": 1e-6, "large": 8e-6}  # dollars a token
BROKEN = "litellm.InternalServerError"


def deployment(model: str) -> dict[str, Any]:
    """As in LiteLLM's documentation; with `mock_response`, nobody is called."""
    prices = {"input_cost_per_token": PRICE[model], "output_cost_per_token": PRICE[model]}
    mock = {"api_key": "none", "mock_response": BROKEN if model == "medium" else f"{model}: it is blue"}
    return {"model_name": "answers", "litellm_params": {"model": f"openai/{model}"} | prices | mock}


async def main(questions: int = 200) -> None:
    luck = random.Random(1)
    with Scheduler(floor=0.8, seed=1) as scheduler:
        litellm.callbacks = [Routing(scheduler)]
        router = litellm.Router([deployment(model) for model in PRICE], num_retries=2, retry_after=0)
        for _ in range(questions):
            answer = await router.acompletion("answers", [{"role": "user", "content": "What colour is the sky?"}])
            model = answer.choices[0].message.content.partition(":")[0]
            scheduler.report(str(task_of(answer)), reward=float(luck.random() < RIGHT[model]))  # or days later
        while (summary := scheduler.summary()).reports < questions:  # LiteLLM says what it cost a moment later
            await asyncio.sleep(0.01)
    right = summary.reward / summary.reports
    print(f"{questions} questions, {summary.failed} calls failed: {right:.0%} right, 80% wanted")
    for option in summary.kinds[0].options:
        print(f"{option.option}: {option.share:.0%} of the calls{', benched' if option.benched else ''}")


if __name__ == "__main__":
    asyncio.run(main())
