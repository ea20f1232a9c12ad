"""Every numerical result of the paper, and tests beyond it: one small file per figure or table."""

from __future__ import annotations

from functools import partial

from worthwhile.experiments import (
    changes,
    delays,
    fading,
    figure_4,
    figure_5,
    omega_benchmark,
    proof_terms,
    recorded_tables,
    sensitivity,
    sizes,
    table_1,
    theorem,
)
from worthwhile.experiments.base import Claim, Experiment, Outcome, Scale
from worthwhile.problem import seven_kinds, two_kinds

EXPERIMENTS = (
    Experiment("table-1", "Table 1: the toy example, for every share of arrivals", table_1.run),
    Experiment("figure-4a", "Figure 4a: two kinds, p = 0.8", partial(figure_4.run, problem=two_kinds(0.8), letter="a")),
    Experiment("figure-4b", "Figure 4b: two kinds, p = 0.6", partial(figure_4.run, problem=two_kinds(0.6), letter="b")),
    Experiment("figure-4c", "Figure 4c: seven kinds", partial(figure_4.run, problem=seven_kinds(), letter="c")),
    Experiment("figure-5", "Figure 5: real training, replayed from a recorded table", figure_5.run),
    Experiment("theorem", "The theorem: regret over the number of tasks", theorem.run),
    Experiment("proof-terms", "The proof: its two errors, lemma by lemma", proof_terms.run),
    Experiment("sensitivity", "Sensitivity: wrong bounds, a wrong horizon, other scales", sensitivity.run),
    Experiment("changes", "Changes: shares that shift, means that drift", changes.run),
    Experiment("fading", "Fading: forgetting against learning a change", fading.run),
    Experiment("delays", "Delays: feedback that comes late", delays.run),
    Experiment("sizes", "Sizes: up to 1 000 options, up to 1 000 kinds", sizes.run),
    Experiment("omega-benchmark", "ω-UCB's own benchmark: one kind, many options", omega_benchmark.run),
    Experiment("recorded-tables", "Recorded tables: headroom and learning curves", recorded_tables.run),
)

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Outcome", "Scale"]
