"""The experiments on the paper's table, theorem and proof: known numbers, bounds above measurements, equal seeds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiments import outcome_in

from worthwhile.experiments import proof_terms, table_1, theorem
from worthwhile.experiments.base import NOT_REPRODUCED, OURS, REPRODUCED, Columns, Outcome, Scale
from worthwhile.experiments.growth import fitted_power, quotient, resampled
from worthwhile.experiments.proof_measures import integral, sample_of, statistics
from worthwhile.optimum import solve
from worthwhile.problem import two_kinds
from worthwhile.simulation.simulator import simulate
from worthwhile.state import Floats

QUICK = Scale(quick=True, progress=False)


@pytest.fixture(scope="module")
def regret(everything: Path) -> Outcome:
    return outcome_in(everything, "theorem")


@pytest.fixture(scope="module")
def proof(everything: Path) -> Outcome:
    return outcome_in(everything, "proof-terms")


def rows_of(table: Columns, **wanted: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table with some values."""
    for values in zip(*table.values(), strict=True):
        row = dict(zip(table, values, strict=True))
        if all(row[name] == value for name, value in wanted.items()):
            yield row


def test_table_1_has_the_papers_two_numbers() -> None:
    outcome = table_1.run(QUICK)
    (row,) = rows_of(outcome.data["table-1"])
    assert (row["greedy"], row["reverse"]) == pytest.approx((2.5, 2.6), abs=1e-12)
    assert row["optimum"] == row["reverse"]
    assert [claim.verdict for claim in outcome.claims] == [REPRODUCED, REPRODUCED, NOT_REPRODUCED, REPRODUCED]


def test_greedy_and_its_reverse_cross_at_one_half_and_the_optimum_is_the_better_of_them() -> None:
    assert table_1.crossing() == Fraction(1, 2)
    assert table_1.crossing_by_search() == pytest.approx(0.5, abs=1e-9)
    for row in rows_of(table_1.run(QUICK).data["table-1-shares"]):
        assert row["optimum"] == pytest.approx(max(row["greedy"], row["reverse"]), rel=1e-12)
        assert (row["share"] < 0.5) == (row["greedy"] > row["reverse"] + 1e-9) or row["share"] in (0.5, 1.0)


def test_the_family_begins_with_the_toy_example_and_greedy_is_greedy_throughout() -> None:
    assert np.array_equal(table_1.toy(0.8).reward[:, [0, 2]], [[3.0, np.nan], [np.nan, 3.0]], equal_nan=True)
    assert (table_1.toy(0.8).reward[1, 1], table_1.toy(0.8).cost[1].tolist()[1:]) == (1.0, [1.0, 2.0])
    for dear in table_1.DEAR:
        assert solve(table_1.toy(0.5, dear)).greedy.tolist() == table_1.ALGORITHMS["greedy"].tolist()


def test_greedys_part_of_the_optimum_goes_to_nothing_in_the_family() -> None:
    rows = list(rows_of(table_1.run(QUICK).data["table-1-family"], share=0.8))
    parts = [row["greedy_part"] for row in rows]
    assert parts[0] == pytest.approx(2.5 / 2.6)
    assert parts == sorted(parts, reverse=True)
    assert parts[-1] * rows[-1]["dear"] == pytest.approx(6.25, rel=1e-2)  # 3/(0.2 d) of 2.4: as 1/d


def test_a_fitted_power_is_found_and_its_error_is_the_scatter_of_repeated_fits() -> None:
    rng, tasks = np.random.default_rng(5), [100, 1000, 10_000]

    def fit() -> tuple[float, float]:
        samples = [tasks_now**0.6 * rng.gamma(2.0, 0.5, size=(60, 1)) for tasks_now in tasks]
        power = fitted_power(tasks, samples, [lambda mean: mean[..., 0]] * 3, seed=int(rng.integers(1000)))
        return power.exponent, power.error

    exponents, errors = np.array([fit() for _ in range(150)]).T
    assert exponents.mean() == pytest.approx(0.6, abs=0.01)
    assert errors.mean() == pytest.approx(exponents.std(), rel=0.2)


def test_the_error_of_a_quotient_is_that_of_resampled_runs() -> None:
    rng = np.random.default_rng(1)
    cost = rng.uniform(1.0, 3.0, 400)
    reward = 2.0 * cost + rng.normal(size=400)
    again = resampled(np.stack([reward, cost], axis=-1), rng)
    assert quotient(reward, cost)[1] == pytest.approx((again[:, 0] / again[:, 1]).std(), rel=0.15)


@pytest.mark.slow
def test_the_regret_by_pseudo_regret_is_the_papers_within_its_chance(regret: Outcome) -> None:
    rows = list(rows_of(regret.data["theorem"]))
    assert {row["tasks"] for row in rows} == {100, 316, 1000, 3162, 10_000}
    for row in rows:
        assert abs(row["tasks"] * row["gap"] - row["regret"]) < 5.0 * row["tasks"] * row["gap_error"]
    learned = [row for row in rows if row["policy"] == "dol-rm" and row["tasks"] == 10_000]
    assert all(row["regret_error"] < row["tasks"] * row["gap_error"] for row in learned)


@pytest.mark.slow
def test_the_bound_is_above_every_measured_regret(regret: Outcome) -> None:
    for row in rows_of(regret.data["theorem"], policy="dol-rm"):
        assert row["tasks"] * row["gap"] < row["bound"]
        assert row["regret"] + 5.0 * row["regret_error"] < row["bound"]


@pytest.mark.slow
def test_regret_grows_more_slowly_than_the_tasks(regret: Outcome) -> None:
    rows = list(rows_of(regret.data["theorem-slopes"]))
    assert len(rows) == 24
    for row in rows:
        low, high = (-0.5, 0.5) if row["policy"] == "oracle" else (0.0, 0.9)
        assert low < row["exponent"] < high
        assert 0.0 < row["exponent_error"] < 0.3
    verdicts = [claim.verdict for claim in regret.claims]
    assert verdicts[:5] == [REPRODUCED] * 5
    assert verdicts[7:] == [OURS] * 4
    fast, near = regret.claims[5:7]
    assert (fast.claim, near.claim) == (
        "Compared with the oracle, DOL-RM converges fast",
        "DOL-RM's regret is near-optimal",
    )


@pytest.mark.slow
def test_every_term_of_the_proof_is_below_its_bound(proof: Outcome) -> None:
    rows = list(rows_of(proof.data["proof-terms"], policy="dol-rm"))
    assert len(rows) == 7 * 5 * 4
    for row in rows:
        assert 0.0 < row["value"] + 5.0 * row["error"] < row["bound"]


@pytest.mark.slow
def test_the_terms_add_up_as_the_proof_says(proof: Outcome) -> None:
    for policy in ("dol-rm", "dol-rm-anytime"):
        for tasks in (100, 1000, 10_000):
            chosen = rows_of(proof.data["proof-terms"], problem=proof_terms.COVERED, policy=policy, tasks=tasks)
            values = {row["quantity"]: row["value"] for row in chosen}
            assert values["gap"] <= values["learning_error"] + values["robbins_monro_gap"]
            assert values["learning_error"] <= values["epsilon"] + values["kappa"] + 1e-12
            assert values["distance_sum"] ** 2 <= 2.0 * tasks * values["lyapunov_sum"]  # Cauchy–Schwarz


@pytest.mark.slow
def test_the_drift_stays_below_the_lemma_window_by_window(proof: Outcome) -> None:
    rows = list(rows_of(proof.data["proof-drift"]))
    assert {row["problem"] for row in rows} == set(theorem.PROBLEMS)
    first = next(row for row in rows if row["problem"] == proof_terms.COVERED)
    assert first["lyapunov"] == pytest.approx(0.5 * (2.6 - 0.5) ** 2)  # θ starts at θ_min = ½
    for row in rows:
        assert row["lemma_4_margin"] >= -3.0 * row["lemma_4_margin_error"]
        assert row["neely_margin"] >= -3.0 * row["neely_margin_error"]
        assert 0.0 < row["b"] < row["b_at_worst"]
    assert rows[-1]["lyapunov"] < 0.02 * rows[0]["lyapunov"]


@pytest.mark.slow
def test_every_lemma_has_a_verdict(proof: Outcome) -> None:
    """Lemma 1 on seven kinds needs more than the quick tasks to fall as fast as it should."""
    lemmas = ["Lemma 1", "Lemma 2", "Lemma 3", "Appendix", "Lemma 4", "Lemma 5", "θ conver"]
    assert [claim.claim[: len(name)] for claim, name in zip(proof.claims, lemmas, strict=True)] == lemmas
    assert all(claim.verdict == REPRODUCED for claim in proof.claims[1:])


@pytest.mark.slow
def test_the_price_ends_nearer_to_the_optimum_than_it_starts(proof: Outcome) -> None:
    for policy in proof_terms.POLICIES:
        for problem in (proof_terms.COVERED, proof_terms.OTHER):
            first, *_, last = rows_of(proof.data["proof-price"], policy=policy, problem=problem)
            assert first["price"] == pytest.approx(0.5)
            assert abs(last["price"] - last["best_ratio"]) < 0.2


def test_the_integral_between_marks_is_the_sum_over_all_tasks_within_two_per_cent() -> None:
    tasks, few = 1000, [*range(1, 30), *np.geomspace(30, 1000, 31).round().astype(int).tolist()]
    sums = []
    for marks in (few, range(1, tasks + 1)):
        results = simulate(two_kinds(0.8), ["dol-rm"], tasks=tasks, runs=40, seed=2, marks=list(marks), progress=False)
        sample = sample_of(results, "dol-rm")
        sums.append(
            [float(statistics(results)[name](sample.mean(axis=0))) for name in ("distance_sum", "lyapunov_sum")]
        )
    assert sums[0] == pytest.approx(sums[1], rel=0.02)
    line: Floats = np.array([1.0, 3.0, 7.0])
    assert float(integral(np.array([0.0, 2.0, 6.0]), line)) == 24.0
