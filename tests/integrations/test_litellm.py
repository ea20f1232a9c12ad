"""LiteLLM's own router, with its mock responses: what it asks, what is reported, and what happens when things fail.

LiteLLM is imported where it is used: that takes seconds, and whoever leaves these tests out shall not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from subprocess import run
from typing import Any, TypeVar

import pytest

from service_process import ServiceProcess
from waiting import LOOK_AGAIN, NET, wait_until
from worthwhile import Client, Scheduler, Task
from worthwhile.errors import BadParameter
from worthwhile.integrations.request_features import language_of, request_features

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Item .* using the `ReadOnly` qualifier:UserWarning"),  # LiteLLM's own types
]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "litellm_routing.py"
PRICES = {"small": 1e-6, "large": 1e-5}  # per token
QUESTION = [{"role": "user", "content": "What is the name of the capital of this country?"}]
INTERNAL_ERROR = "litellm.InternalServerError"
T = TypeVar("T")


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """LiteLLM's callbacks and cache are global."""
    import litellm

    yield
    litellm.callbacks, litellm.cache = [], None
    for name in ("input_callback", "success_callback", "failure_callback"):
        setattr(litellm, name, [])
        setattr(litellm, f"_async_{name}", [])


def deployment(model: str, group: str = "answers", info: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One that answers by itself, without a provider."""
    price = PRICES.get(model)
    told = {"model": f"openai/{model}", "api_key": "none", "mock_response": f"answer of {model}"}
    if price is not None:
        told |= {"input_cost_per_token": price, "output_cost_per_token": price}
    return {"model_name": group, "litellm_params": told | more, "model_info": info or {}}


def router(*deployments: dict[str, Any], **more: Any) -> Any:
    import litellm

    return litellm.Router(list(deployments), **({"num_retries": 0, "disable_cooldowns": True} | more))


def routing(scheduler: Any, **more: Any) -> Any:
    """A callback that LiteLLM knows of."""
    import litellm

    from worthwhile.integrations.litellm import Routing

    callback = Routing(scheduler, **({"features": None, "patience": NET} | more))
    litellm.callbacks = [callback]
    return callback


def going_on(work: Callable[[], Coroutine[Any, Any, T]], until: Callable[[], object] = lambda: True) -> T:
    """What it returns; the loop goes on until what LiteLLM does in the background has been done, too."""

    async def all_of_it() -> T:
        result = await work()
        for _ in range(int(NET / LOOK_AGAIN)):
            if until():
                return result
            await asyncio.sleep(LOOK_AGAIN)
        raise AssertionError("what was waited for did not happen")

    return asyncio.run(all_of_it())


def reports(scheduler: Scheduler, count: int) -> Callable[[], bool]:
    """Whether so many have arrived."""
    return lambda: scheduler.summary().reports >= count


def ask(to: Any, count: int = 1, **more: Any) -> Callable[[], Coroutine[Any, Any, list[Any]]]:
    """So many questions, one after the other, and their answers."""

    async def asked() -> list[Any]:
        return [await to.acompletion("answers", QUESTION, **more) for _ in range(count)]

    return asked


def text(response: Any) -> str:
    return str(response.choices[0].message.content)


def only(scheduler: Scheduler) -> Any:
    """The line of the only task."""
    [line] = scheduler.latest()
    return line


def test_a_request_is_answered_by_the_option_that_the_scheduler_has_chosen() -> None:
    from worthwhile.integrations.litellm import task_of

    with Scheduler(policy="random-option", seed=1) as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0)
        answers = going_on(ask(router(deployment("small"), deployment("large")), 20), reports(scheduler, 20))
        chosen = {line.task: line.option for line in scheduler.latest(20)}
    assert {task_of(answer): text(answer).replace("answer of ", "openai/") for answer in answers} == chosen
    assert set(chosen.values()) == {"openai/small", "openai/large"}


def test_deployments_of_one_model_are_one_option_and_model_info_names_others() -> None:
    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0)
        twins = [deployment("small", api_base=f"http://{region}.invalid") for region in ("east", "west")]
        hard = deployment("small", info={"option": "small, thinking hard"}, reasoning_effort="high")
        going_on(ask(router(*twins, hard)), reports(scheduler, 1))
        assert {option.option for option in scheduler.explain("1").options} == {"openai/small", "small, thinking hard"}


@pytest.mark.parametrize("cost", ["price", "tokens"])
def test_what_a_call_cost_is_reported_without_a_word_from_the_caller(cost: str) -> None:
    with Scheduler() as scheduler:
        routing(scheduler, cost=cost, judge=lambda values, response: 0.75)
        [answer] = going_on(ask(router(deployment("small"))), reports(scheduler, 1))
        tokens = answer.usage.total_tokens
        line = only(scheduler)
    assert tokens > 0
    assert (line.reward, line.cost) == (0.75, pytest.approx(tokens * (1.0 if cost == "tokens" else PRICES["small"])))


def test_seconds_are_those_of_the_call() -> None:
    with Scheduler() as scheduler:
        routing(scheduler, cost="seconds", judge=lambda values, response: 1.0)
        going_on(ask(router(deployment("small", mock_delay=0.2))), reports(scheduler, 1))
        assert only(scheduler).cost >= 0.2


def test_a_judge_may_be_awaited_or_say_nothing_yet() -> None:
    async def slow_judge(values: Mapping[str, Any], response: Any) -> float | None:
        await asyncio.sleep(0)
        return 0.5 if values["messages"] == QUESTION and text(response) == "answer of small" else None

    with Scheduler() as scheduler:
        routing(scheduler, judge=slow_judge)
        going_on(ask(router(deployment("small"))), reports(scheduler, 1))
        going_on(ask(router(deployment("large"))), lambda: scheduler.tasks(["2"])[0].cost is not None)
        first, second = scheduler.tasks(["1", "2"])
        assert (first.reward, second.reward, second.state) == (0.5, None, "running")


def test_a_judge_that_raises_leaves_the_reward_to_be_reported(caplog: pytest.LogCaptureFixture) -> None:
    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1 / 0)
        going_on(ask(router(deployment("small"))), lambda: only(scheduler).cost is not None)
        scheduler.report("1", reward=1.0)
        assert only(scheduler).state == "reported"
    assert "the judge raised" in caplog.text


def test_the_reward_comes_later_from_a_shell(tmp_path: Path) -> None:
    from worthwhile.integrations.litellm import task_of

    store = f"{tmp_path}/models.db"
    with Scheduler(store) as scheduler:
        routing(scheduler)
        [answer] = going_on(ask(router(deployment("small"))), lambda: only(scheduler).cost is not None)
        report = ["report", store, str(task_of(answer)), "--reward", "0.9"]
        run([sys.executable, "-m", "worthwhile", *report], check=True, capture_output=True)
        assert (only(scheduler).state, only(scheduler).reward) == ("reported", 0.9)


def test_a_service_decides_takes_the_reward_and_may_be_killed(sqlite: str) -> None:
    from worthwhile.integrations.litellm import task_of

    with ServiceProcess(sqlite) as service, Client(service.url, patience=0.0, timeout=NET) as client:
        routing(client)
        models = router(deployment("small"), deployment("large"))
        [answer] = going_on(ask(models), lambda: client.latest()[0].cost is not None)
        assert service.post(f"/v1/schedulers/default/tasks/{task_of(answer)}/report", {"reward": 0.9}).is_success
        assert client.summary().reports == 1
        service.kill()
        without = going_on(ask(models, 3))
        assert [task_of(each) for each in without] == [None, None, None]
        with ServiceProcess(sqlite, port=service.port):
            [after] = going_on(ask(models), lambda: client.latest()[0].cost is not None)
        assert task_of(after) == "2"


def test_what_fails_is_a_failure_and_the_next_attempt_takes_what_has_not_failed() -> None:
    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0)
        models = router(deployment("small", mock_response=INTERNAL_ERROR), deployment("large"), num_retries=1)
        answers = going_on(ask(models, 10), reports(scheduler, 10))
        summary = scheduler.summary()
        attempts = [line.attempts for line in scheduler.latest(10)]
    assert {text(answer) for answer in answers} == {"answer of large"}
    assert (summary.tasks, summary.reports) == (10, 10)
    assert summary.failed == sum(attempts) - 10 > 0
    assert "InternalServerError" in summary.warnings[0]


def test_a_time_out_is_a_failure_that_took_its_time() -> None:
    import litellm

    with Scheduler() as scheduler:
        routing(scheduler, cost="seconds")
        with pytest.raises(litellm.Timeout):
            going_on(ask(router(deployment("small", mock_timeout=True, timeout=0.2))))
        line = only(scheduler)
    assert (line.state, line.reason.partition(":")[0]) == ("failed", "Timeout")
    assert line.cost >= 0.2


def test_another_group_is_another_task() -> None:
    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0)
        broken, spare = deployment("small", mock_response=INTERNAL_ERROR), deployment("large", group="spare")
        going_on(ask(router(broken, spare, fallbacks=[{"answers": ["spare"]}])), reports(scheduler, 1))
        assert [(line.kind, line.state) for line in scheduler.latest()] == [
            ("spare", "reported"),
            ("answers", "failed"),
        ]


def test_an_option_that_is_unhealthy_when_it_is_its_turn_is_not_waited_for() -> None:
    """The second attempt may only take what has not failed, and that is no longer there."""
    with Scheduler(policy="random-option") as scheduler:
        callback = routing(scheduler)
        both = [deployment("small"), deployment("large")]
        values = {"metadata": {}, "litellm_trace_id": "a request"}
        [first] = going_on(lambda: callback.async_filter_deployments("answers", both, QUESTION, values))
        going_on(lambda: callback.async_post_call_failure_deployment_hook(values, OSError("away"), None))
        left = going_on(lambda: callback.async_filter_deployments("answers", [first], QUESTION, values))
        assert (left, values["metadata"], only(scheduler).state) == ([first], {}, "cancelled")


def test_features_say_how_long_a_request_is_and_its_language() -> None:
    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0, features=request_features)
        going_on(ask(router(deployment("small")), metadata={"kind": "look-up"}), reports(scheduler, 1))
        line = only(scheduler)
    assert line.kind == "look-up"
    assert line.features == {"characters": 48, "messages": 1, "images": 0, "tools": 0, "language": "en"}


def test_features_count_tools_and_images_and_look_at_what_is_no_chat() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [{"role": "user", "content": [{"type": "text", "text": "abc"}, image]}, {"role": "tool", "content": None}]
    told = {"characters": 3, "messages": 2, "images": 1, "tools": 1, "language": None}
    assert request_features(parts, {"tools": [{"type": "function"}]}) == told
    no_chat = {"characters": 4, "messages": 0, "images": 0, "tools": 0, "language": None}
    assert request_features(None, {"input": ["ab", "c"]}) == no_chat


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "What is the shortest way to get to the station?"),
        ("de", "Was ist der kürzeste Weg zum Bahnhof, und wie lange dauert das?"),
        ("fr", "Quelle est la plus courte distance pour aller à la gare, et dans une heure ?"),
        ("es", "¿Cómo se va a la estación y que es el camino más corto para los niños?"),
        ("zh", "去车站最近的路是哪一条？"),
        ("ja", "駅への一番近い道はどれですか。"),
        ("cyrillic", "Как быстрее всего пройти к вокзалу?"),
        (None, "def f(x): return x + 1"),
    ],
)
def test_the_language_is_guessed_from_signs_and_frequent_words(language: str | None, words: str) -> None:
    assert language_of(words) == language


def test_a_floor_is_kept_as_the_scheduler_has_it() -> None:
    """By the ratio and by the price, the small model would do: with a floor, some go to the large one."""
    worth = {"answer of small": 0.2, "answer of large": 1.0}
    with Scheduler(floor=0.6, seed=1) as scheduler:
        routing(scheduler, judge=lambda values, response: worth[text(response)])
        going_on(ask(router(deployment("small"), deployment("large")), 150), reports(scheduler, 150))
        summary = scheduler.summary()
    assert summary.reward / summary.reports > 0.57
    assert {option.option: option.share for option in summary.kinds[0].options}["openai/small"] > 0.25


def test_a_stream_is_reported_when_it_ends_and_its_task_is_in_the_metadata() -> None:
    from worthwhile.integrations.litellm import task_of

    kept: dict[str, Any] = {}

    async def read() -> list[Any]:
        stream = await router(deployment("small")).acompletion("answers", QUESTION, stream=True, metadata=kept)
        return [each async for each in stream]

    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0)
        assert len(going_on(read, reports(scheduler, 1))) > 1
        assert task_of(kept) == only(scheduler).task
        assert only(scheduler).cost > 0.0


def test_what_has_no_price_is_cancelled_with_a_word_about_it(caplog: pytest.LogCaptureFixture) -> None:
    with Scheduler() as scheduler:
        routing(scheduler, judge=lambda values, response: 1.0)
        going_on(ask(router(deployment("unheard-of"))), lambda: only(scheduler).state == "cancelled")
    assert "openai/unheard-of: there is no price for it, so nothing is learned from it" in caplog.text


def test_an_answer_from_the_cache_teaches_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with Scheduler() as scheduler:
        callback = routing(scheduler)
        values: dict[str, Any] = {"metadata": {}}
        going_on(lambda: callback.async_filter_deployments("answers", [deployment("small")], QUESTION, values))
        told = {"litellm_params": values, "cache_hit": True, "response_cost": 0.0}
        going_on(lambda: callback.async_log_success_event(told, None, 0.0, 1.0))
        callback.close()
        assert only(scheduler).state == "cancelled"
    assert "there is no price" not in caplog.text


def test_methods_that_are_not_async_are_served_and_said_to_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with Scheduler() as scheduler:
        routing(scheduler)
        assert text(router(deployment("small")).completion("answers", QUESTION)) == "answer of small"
        wait_until(lambda: "answers: only async methods" in caplog.text, "the warning")
        assert scheduler.latest() == []


def test_only_the_groups_that_are_named_are_decided() -> None:
    with Scheduler() as scheduler:
        routing(scheduler, groups=["others"])
        assert text(going_on(ask(router(deployment("small"))))[0]) == "answer of small"
        assert scheduler.latest() == []


def test_two_callbacks_keep_to_their_own_groups() -> None:
    import litellm

    with Scheduler() as idle, Scheduler() as scheduler:
        other = routing(idle, groups=["others"])
        mine = routing(scheduler, groups=["answers"], judge=lambda values, response: 1.0)
        litellm.callbacks = [other, mine]
        going_on(ask(router(deployment("small"))), reports(scheduler, 1))
        assert idle.latest() == []


def test_an_unknown_cost_is_refused() -> None:
    with Scheduler() as scheduler, pytest.raises(BadParameter, match="'money': it is one of price, tokens, seconds"):
        routing(scheduler, cost="money")


class Slow(Scheduler):
    """Decides when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = threading.Event(), threading.Event()

    def decide(self, *arguments: Any, **named: Any) -> Task:
        task = super().decide(*arguments, **named)
        self.asked.set()
        assert self.go_on.wait(NET)
        return task


def test_a_decision_that_takes_too_long_is_not_waited_for_and_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with Slow() as scheduler:
        callback = routing(scheduler, patience=0.05)
        going_on(ask(router(deployment("small")), 3))
        assert len(scheduler.latest()) == 1  # the others have not even asked
        assert only(scheduler).state == "running"
        scheduler.go_on.set()
        callback.close()
        assert (only(scheduler).state, callback.late) == ("cancelled", set())
    assert "no decision within 0.05 s" in caplog.text


def test_a_caller_who_goes_away_while_it_is_decided_leaves_no_task_behind() -> None:
    with Slow() as scheduler:
        callback = routing(scheduler)

        async def go_away() -> None:
            asking = asyncio.ensure_future(router(deployment("small")).acompletion("answers", QUESTION))
            while not scheduler.asked.is_set():
                await asyncio.sleep(LOOK_AGAIN)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

        going_on(go_away)
        scheduler.go_on.set()
        callback.close()
        assert only(scheduler).state == "cancelled"


def test_the_proxys_callers_find_the_task_in_a_header() -> None:
    with Scheduler() as scheduler:
        callback = routing(scheduler)
        values: dict[str, Any] = {"metadata": {}}
        going_on(lambda: callback.async_filter_deployments("answers", [deployment("small")], QUESTION, values))
        headers = going_on(lambda: callback.async_post_call_response_headers_hook(values, None, None))
        assert headers == {"x-worthwhile-task": only(scheduler).task}
        assert going_on(lambda: callback.async_post_call_response_headers_hook({}, None, None)) is None


@pytest.mark.integration  # LiteLLM is imported once more for it
def test_the_example_keeps_its_floor_and_the_page_shows_it() -> None:
    done = run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=NET, check=True)
    found = re.match(r"200 questions, (\d+) calls failed: (\d+)% right, 80% wanted\n", done.stdout)
    assert found is not None
    assert int(found[1]) < 20
    assert int(found[2]) >= 75
    assert "openai/medium" in done.stdout.partition(", benched")[0].rpartition("\n")[2]
    page = (ROOT / "docs" / "integrations" / "litellm.md").read_text(encoding="utf-8")
    part = page.partition("<!-- not run: a part of litellm_routing.py -->\n```python\n")[2].partition("```")[0]
    assert part
    assert part in EXAMPLE.read_text(encoding="utf-8")
