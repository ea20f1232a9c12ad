"""The divergences behind the default's evidence, by hand; test_default_formulas.py has what is made of them.

If the default's evidence is changed on purpose, its value here is changed by hand, too.
"""

from __future__ import annotations

import math
from itertools import product

import pytest

from reference import least_gamma_evidence_on_a_grid
from worthwhile.policies.evidence import cube_root, gamma_evidence, gaussian_evidence, least_gamma_evidence


@pytest.mark.parametrize(
    ("behind", "price", "cost", "variances", "squares"),
    [
        (2.0, 1.0, 10.0, (3.0, 2.0, 0.5), 4 / 4),  # v = 3 + 2 − 1
        (2.0, 2.0, 10.0, (3.0, 2.0, 0.5), 4 / 9),  # v = 3 + 4·2 − 2·2·½
        (3.0, 1.0, 10.0, (3.0, 2.0, -0.5), 9 / 6),
        (2.0, 0.0, 10.0, (3.0, 2.0, 0.5), 4 / 3),  # costs have no price
        (2.0, 1.0, 0.5, (3.0, 2.0, 0.5), 6 / 5.75),  # ¾ cannot be saved: the cost falls by ½, the reward gains 1½
        (2.0, 1.0, 0.0, (3.0, 2.0, 0.5), 8 / 5.75),  # nothing can be saved
        (2.0, 1.0, -3.0, (3.0, 2.0, 0.5), 8 / 5.75),
        (2.0, 2.0, 0.5, (3.0, 2.0, 0.5), 3.25 / 5.75),  # 2 − 2·½ gained: 2·1 + (2·½·1 + 3·½)·½
        (2.0, 1.0, -3.0, (3.0, 0.5, 1.0), 4 / 1.5),  # a dearer option that earns more: nothing is saved at all
    ],
)
def test_gaussian_evidence_is_half_the_log_of_the_least_squared_distance(
    behind: float, price: float, cost: float, variances: tuple[float, float, float], squares: float
) -> None:
    assert gaussian_evidence(behind, price, cost, *variances) == pytest.approx(0.5 * math.log(1 + squares), rel=1e-14)


@pytest.mark.parametrize(("price", "covariance", "squares"), [(1.0, -1.0, 1.0), (2.0, 1.0, 2.25), (2.0, 7.0 / 6, 2.25)])
def test_a_correlation_counts_for_a_little_less_than_one(price: float, covariance: float, squares: float) -> None:
    """1 − (1 − 10⁻¹²)² of the variances' product is left. At price 1: 1½ gained, ½ saved, 1½² − 1½ + ¼ = 1."""
    found = gaussian_evidence(2.0, price, 0.5, 1.0, 1.0, covariance)
    assert found == pytest.approx(0.5 * math.log(1 + squares / 2e-12), rel=1e-5)


def test_what_cannot_vary_cannot_catch_up() -> None:
    assert gaussian_evidence(2.0, 1.0, 10.0, 1.0, 1.0, 1.0) == math.inf  # R − θC has no variance
    assert gaussian_evidence(2.0, 1.0, 10.0, 3e-18, 0.0, 0.0) == math.inf  # 4·10⁻¹⁸ and less is rounding
    assert gaussian_evidence(2.0, 1.0, 10.0, 4.1e-18, 0.0, 0.0) == pytest.approx(0.5 * math.log(4 / 4.1e-18), rel=1e-9)
    assert gaussian_evidence(2.0, 1.0, 0.5, 0.0, 1.0, 0.0) == math.inf  # the reward never varies, the cost is too small


@pytest.mark.parametrize(
    ("y", "delta", "nu", "kappa", "expected"),
    [
        (0.0, 2.0, 4.0, 9.0, 0.5 * math.log(2)),
        (0.5, 1.5, 1.0, 3.0, 0.5 * math.log(2) + 3 * (1 - math.log(2))),
        (0.75, 0.75, 1.0, 2.0, 2 * (3 - math.log(4))),
        (0.5, 2.5, 0.5, 1.0, 0.5 * math.log(9) + 1 - math.log(2)),
        (1.0, 2.0, 1.0, 1.0, math.inf),
        (1.5, 2.0, 1.0, 1.0, math.inf),
    ],
)
def test_gamma_evidence_of_a_share_saved(y: float, delta: float, nu: float, kappa: float, expected: float) -> None:
    """½ ln(1 + (δ − y)²/ν) + κ(u − ln(1 + u)) with u = y/(1 − y)."""
    assert gamma_evidence(y, delta, nu, kappa) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("kappa", [0.01, 0.5, 1.0, 7.0, 300.0, 1e6])
def test_the_least_gamma_evidence_is_the_least_of_all_shares(kappa: float) -> None:
    for delta, nu in product((1e-3, 0.1, 0.9, 1.0, 3.0, 40.0), (1e-4, 0.01, 0.3, 1.0, 20.0)):
        expected = least_gamma_evidence_on_a_grid(delta, nu, kappa)
        assert least_gamma_evidence(delta, nu, kappa) == pytest.approx(expected, rel=1e-8), (delta, nu)


def test_costs_that_never_vary_save_nothing() -> None:
    assert least_gamma_evidence(2.0, 4.0, 1e18) == pytest.approx(0.5 * math.log(2), rel=1e-12)


@pytest.mark.parametrize(
    ("q", "p", "x"),
    [
        (9.0, 1.0, 3.0),
        (-9.0, 1.0, -3.0),
        (2.0, -1.0, 1.0),
        (-2.0, -1.0, -1.0),
        (4.0, 0.0, 2.0),
        (0.0, -1.0, 0.0),
        (0.0, 0.0, 0.0),
    ],
)
def test_the_real_root_of_a_cubic(q: float, p: float, x: float) -> None:
    """x³ − 3p x − 2q = 0."""
    assert x**3 - 3 * p * x - 2 * q == 0.0
    assert cube_root(q, math.sqrt(q * q - p**3), p) == pytest.approx(x, rel=1e-14, abs=1e-15)
