"""Every numerical result of the paper, and tests beyond it: one small file per figure or table."""

from __future__ import annotations

from worthwhile.experiments import figure_4
from worthwhile.experiments.base import Claim, Experiment, Outcome, Scale

EXPERIMENTS = (
    Experiment("figure-4a", "Figure 4a: two kinds, p = 0.8", figure_4.run_a),
    Experiment("figure-4b", "Figure 4b: two kinds, p = 0.6", figure_4.run_b),
    Experiment("figure-4c", "Figure 4c: seven kinds", figure_4.run_c),
)

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Outcome", "Scale"]
