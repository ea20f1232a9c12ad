"""How a policy is made from text, what it is told, and which parameters are refused."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile.errors import BadParameter, UnknownPolicy
from worthwhile.policies.base import INSTEAD, Known, known, methods_of
from worthwhile.policies.dol_rm import DolRm
from worthwhile.policies.fixed import FixedOption
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.omega_ucb import OmegaUcb
from worthwhile.policies.registry import DEFAULT, LIST, find, make
from worthwhile.policies.thompson import RatioThompson
from worthwhile.problem import Problem

PROBLEM = Problem.of({"x": (0.5, {"a": (1.0, 4.0), "b": (3.0, 0.5)}), "y": (0.5, {"b": (2.0, 1.0)})})
NO_POLICY = 3.0


class Lazy(NamedTuple):
    """Too lazy to learn."""

    patience: int = 1


def told() -> Known:
    return known(PROBLEM, 50)


def test_what_is_known_of_a_problem() -> None:
    truth = told()
    assert truth[:7] == (50, 1.0, 3.0, 0.5, 4.0, 0.25, 6.0)
    assert truth.best_ratio == pytest.approx(2.5 / 0.75)  # b for both
    assert np.array_equal(truth.mean_reward, [[1.0, 3.0], [0.0, 2.0]])  # 0 where nothing is on offer
    assert np.array_equal(truth.mean_cost, [[4.0, 0.5], [0.0, 1.0]])
    assert truth.options == ("a", "b")


def test_a_policy_is_told_what_it_must_know_and_keeps_its_defaults() -> None:
    assert make("dol-rm", told()) == DolRm(50, 3.0, 0.5, 0.25, 6.0, anytime=False, noise=1.0, explore_first=False)
    assert make("dol-rm-anytime", told()) == DolRm(50, 3.0, 0.5, 0.25, 6.0, anytime=True)
    assert make("omega-ucb", told()) == OmegaUcb(3.0, 4.0, 0.0, 0.0, 0.25, adaptive=False)
    assert make("omega-star-ucb", told()) == OmegaUcb(3.0, 4.0, adaptive=True)
    assert make("ratio-imed", told()) == RatioImed(half_life=0.0, caution=1.0)
    assert make("ratio-ts", told()) == RatioThompson(0.5, noise=1.0)
    assert DEFAULT == "ratio-imed"


def test_parameters_are_set_by_name_and_type() -> None:
    made = make("dol-rm,horizon=7,noise=2,explore_first=TRUE,reward_max=1e1", told())
    assert made == DolRm(7, 10.0, 0.5, 0.25, 6.0, anytime=False, noise=2.0, explore_first=True)
    assert make("dol-rm-anytime,anytime=false", told()) == make("dol-rm", told())
    assert make("fixed-option,option=b", told()) == FixedOption(1)
    assert make("worthwhile.policies.imed:RatioImed,caution=0.5", told()) == RatioImed(caution=0.5)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dol-rm,noise", "policy 'dol-rm,noise': 'noise' is not parameter=value"),
        ("dol-rm,horizon=1.5", "policy 'dol-rm': horizon = '1.5'; it must be a whole number"),
        ("dol-rm,noise=much", "policy 'dol-rm': noise = 'much'; it must be a number"),
        ("dol-rm,anytime=1", "policy 'dol-rm': anytime = '1'; it must be true or false"),
        ("dol-rm,nois=1", "policy 'dol-rm' has no parameter 'nois'; did you mean"),
        ("random-option,x=1", "policy 'random-option' has no parameter 'x'; it has none"),
        ("fixed-option,option=c", "policy 'fixed-option': no option 'c' here"),
    ],
)
def test_a_bad_parameter_is_named(text: str, complaint: str) -> None:
    with pytest.raises(BadParameter, match="^" + re.escape(complaint)):
        make(text, told())


class Needy(NamedTuple):
    """It must be told what nobody knows."""

    wisdom: float

    def init(self, kinds: int, options: int) -> Any: ...

    choose = judge = learn = observe = init


def test_what_a_policy_must_be_told_and_nobody_knows_has_to_be_given() -> None:
    here = f"{__name__}:Needy"
    with pytest.raises(BadParameter, match=f"policy '{here}' .*wisdom; write {here},wisdom=value"):
        make(here, told())
    assert make(f"{here},wisdom=2", told()) == Needy(2.0)


@pytest.mark.parametrize(("truth", "hint"), [(None, ", or use ratio-imed"), (told(), "")])
def test_who_is_told_nothing_is_pointed_to_the_default(truth: Known | None, hint: str) -> None:
    with pytest.raises(BadParameter, match=f"must be told wisdom; write .*,wisdom=value{hint}$"):
        make(f"{__name__}:Needy", truth)


def test_the_methods_of_a_policy_are_those_it_has() -> None:
    assert set(methods_of(RatioImed())) == {"choose", "judge", "learn", "observe", *INSTEAD}
    assert methods_of(RatioImed())["learn"] is RatioImed.learn
    assert methods_of(RatioImed())["fail"] is RatioImed.fail
    assert methods_of(Lazy()) == INSTEAD


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("dol-mr", "no policy 'dol-mr'; did you mean"),
        ("no_such_module:Mine", "policy 'no_such_module:Mine': cannot import 'no_such_module' (ModuleNotFoundError: "),
        ("worthwhile.policies.imed:Mine", "policy 'worthwhile.policies.imed:Mine': 'worthwhile.policies.imed' has no "),
        (
            f"{__name__}:NO_POLICY",
            f"policy '{__name__}:NO_POLICY' is not a policy: it must be a NamedTuple class with ",
        ),
        (f"{__name__}:told", f"policy '{__name__}:told' is not a policy: it must be a NamedTuple class with init, "),
        ("builtins:dict", "policy 'builtins:dict' is not a policy: it must be a NamedTuple class with init, choose"),
        (f"{__name__}:Lazy", f"policy '{__name__}:Lazy' is not a policy: it has no method init"),
    ],
)
def test_what_is_no_policy_is_told_so(name: str, complaint: str) -> None:
    with pytest.raises(UnknownPolicy, match="^" + re.escape(complaint)):
        find(name)


def test_a_summary_is_the_first_line_of_the_docstring_unless_the_list_has_words() -> None:
    assert (
        LIST["dol-rm"].summary
        == "The paper's algorithm: optimistic reward − θ·optimistic cost, θ by Robbins-Monro steps."
    )
    assert LIST["dol-rm-anytime"].summary.startswith("DOL-RM with the step of the paper's figures")
    assert find("worthwhile.policies.imed:RatioImed").summary == LIST["ratio-imed"].summary


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dol-rm,horizon=0", "DolRm: horizon = 0; it must be above 0"),
        ("dol-rm,cost_min=0", "DolRm: cost_min = 0.0; it must be above 0"),
        ("dol-rm,reward_max=nan", "DolRm: reward_max = nan; it must be a finite number"),
        ("dol-rm,price_max=inf", "DolRm: price_max = inf; it must be a finite number"),
        ("dol-rm,noise=-0.1", "DolRm: noise = -0.1; it must be 0 or more"),
        ("dol-rm,price_min=6.5", r"DolRm: price_min = 6.5\b.* above price_max = 6.0"),
        ("sample-rm,horizon=-1", "SampleRm: horizon = -1; it must be above 0"),
        ("sample-rm,cost_min=-1", "SampleRm: cost_min = -1.0; it must be above 0"),
        ("sample-rm,price_max=0.2", r"SampleRm: price_min = 0.25\b.* above price_max = 0.2"),
        ("running-ratio-dol,cost_min=0", "RunningRatio: cost_min = 0.0; it must be above 0"),
        ("running-ratio-dol,noise=-1", "RunningRatio: noise = -1.0; it must be 0 or more"),
        ("plug-in-dol,horizon=0", "PlugInDol: horizon = 0; it must be above 0"),
        ("reward-ucb,horizon=0", "RewardUcb: horizon = 0; it must be above 0"),
        ("ratio-ucb,cost_min=0", "RatioUcb: cost_min = 0.0; it must be above 0"),
        ("reward-ts,noise=-1", "RewardThompson: noise = -1.0; it must be 0 or more"),
        ("plug-ts,first_tries=0", "PlugTs: first_tries = 0; it must be above 0"),
        ("linear-greedy,exploration=-1", "LinearGreedy: exploration = -1.0; it must be 0 or more"),
        ("linear-greedy,ridge=0", "LinearGreedy: ridge = 0.0; it must be above 0"),
        ("linear-ts,exploration=-1", "LinearTs: exploration = -1.0; it must be 0 or more"),
        ("linear-ts,ridge=-2", "LinearTs: ridge = -2.0; it must be above 0"),
        ("linear-ts,first_tries=0", "LinearTs: first_tries = 0; it must be above 0"),
        ("ratio-ts,cost_min=0", "RatioThompson: cost_min = 0.0; it must be above 0"),
        ("oracle,cost_min=0", "Oracle: cost_min = 0.0; it must be above 0"),
        ("oracle,price_min=7", r"Oracle: price_min = 7.0\b.* above price_max = 6.0"),
        ("omega-ucb,cost_max=0", "OmegaUcb: cost_max = 0.0; it must be above 0"),
        ("omega-ucb,rho=-1", "OmegaUcb: rho = -1.0; it must be 0 or more"),
        ("m-ucb,cost_max=0", "MUcb: cost_max = 0.0; it must be above 0"),
        ("bts,cost_max=0", "Bts: cost_max = 0.0; it must be above 0"),
        ("b-greedy,exploration=-1", "BGreedy: exploration = -1.0; it must be 0 or more"),
        ("ratio-imed,caution=0", "RatioImed: caution = 0.0; it must be above 0"),
        ("ratio-imed,half_life=0.99", "RatioImed: half_life = 0.99; give a number of tasks, at least 1, or 0 for no"),
        ("ratio-imed,half_life=-2", "RatioImed: half_life = -2.0; give a number of tasks, at least 1, or 0 for no"),
    ],
)
def test_parameters_that_no_policy_can_work_with_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadParameter, match="^" + complaint):
        make(text, told())


@pytest.mark.parametrize(
    "text",
    [
        "dol-rm,horizon=1,noise=0,price_min=6,reward_max=-1",
        "sample-rm,horizon=1,noise=0,price_min=6",
        "oracle,price_min=6",
        "ratio-imed,half_life=1,caution=1e-9",
        "ratio-imed,half_life=0",
        "omega-ucb,rho=0,reward_max=-1",
        "b-greedy,exploration=0",
    ],
)
def test_parameters_at_the_edge_are_fine(text: str) -> None:
    assert make(text, told())
