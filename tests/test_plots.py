"""Figures: the lines are the results, every policy looks the same everywhere, and names stay readable."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from PIL import Image

from waiting import NET
from worthwhile import Results, seven_kinds, simulate, solve
from worthwhile.errors import BadParameter
from worthwhile.plots import LOOKS, draw, look_of, plot, spread_out
from worthwhile.policies.registry import LIST
from worthwhile.simulation.loop import TOTALS


@pytest.fixture(scope="module")
def results() -> Results:
    return simulate(seven_kinds(), list(LIST), tasks=1000, runs=3, engine="python")


def axes_of(results: Results, measure: str) -> Any:
    """The axes of a figure that is drawn but not saved."""
    figure = draw(results, measure)
    FigureCanvasAgg(figure).draw()
    return figure.axes[0]


def names_of(axes: Any) -> dict[str, Any]:
    """The texts beside the lines, by their first word or two."""
    return {text.get_text().split("  ")[0]: text for text in axes.texts}


@pytest.mark.parametrize(("measure", "source", "factor"), [("loss", "loss", 100.0), ("ratio", "expected_ratio", 1.0)])
def test_every_line_is_the_mean_over_runs(results: Results, measure: str, source: str, factor: float) -> None:
    axes = axes_of(results, measure)
    expected = factor * results.measure(source).mean(axis=0)
    for place, policy in enumerate(results.policies):
        line = axes.lines[place]
        assert np.array_equal(line.get_xdata(), results.marks)
        assert np.allclose(line.get_ydata(), expected[place])
        assert line.get_color() == look_of(policy).colour
        shown = names_of(axes)[policy].get_text().split("  ")[1].removesuffix(" %")
        assert float(shown) == pytest.approx(expected[place, -1], rel=0.05, abs=0.001)


def test_the_band_holds_the_middle_half_of_the_runs(results: Results) -> None:
    one = replace(results, policies=("bts",), curves=results.curves[:, [list(LIST).index("bts")]])
    corners = axes_of(one, "loss").collections[0].get_paths()[0].vertices
    low, high = np.quantile(100.0 * one.measure("loss")[:, 0], (0.25, 0.75), axis=0)
    for edge in (low, high):
        for task, height in zip(one.marks, edge, strict=True):
            assert np.isclose(corners, (task, height)).all(axis=1).any()


def test_optimum_and_greedy_are_drawn_where_they_belong(results: Results) -> None:
    best = solve(seven_kinds())
    assert best.ratio == pytest.approx(2.425 / 1.15)
    levels = {"loss": (0.0, 100.0 * (1 - 2.1 / best.ratio)), "ratio": (2.425 / 1.15, 2.1)}
    for measure, expected in levels.items():
        axes = axes_of(results, measure)
        flat = [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]
        assert flat == pytest.approx(expected)
        assert "optimum θ* = 2.109" in names_of(axes)
        assert "per-kind greedy" in names_of(axes)


def test_units_and_names_are_on_the_figure(results: Results) -> None:
    problem = replace(results.problem, reward_unit="AUC", cost_unit="s", name="my problem")
    axes = axes_of(replace(results, problem=problem), "ratio")
    assert axes.get_ylabel() == "reward per cost so far (AUC/s)"
    assert axes.get_title(loc="left") == "my problem"
    assert axes.get_title(loc="right") == "mean of 3 runs"
    assert axes_of(results, "loss").get_ylabel() == "share of the best ratio lost so far (%)"


def test_every_listed_policy_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(LIST)
    assert len({(look.colour, str(look.dashes)) for look in LOOKS.values()}) == len(LIST)
    assert look_of("mine:Own") == look_of("mine:Own") != look_of("dol-rm")


def test_twenty_names_do_not_touch(results: Results) -> None:
    axes = axes_of(results, "loss")
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(LIST) + 2
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30).map(sorted), st.floats(0.0, 0.1))
def test_names_are_moved_apart_in_order_and_stay_inside(heights: list[float], gap: float) -> None:
    placed = spread_out(heights, gap)
    least = min(gap, 1.0 / max(1, len(heights) - 1))
    assert all(lower + least <= upper + 1e-9 for lower, upper in pairwise(placed))
    assert -1e-9 <= placed[0] <= placed[-1] <= 1.0 + 1e-9


def test_names_far_apart_stay_where_they_are() -> None:
    assert spread_out([0.1, 0.5, 0.9], 0.05) == pytest.approx([0.1, 0.5, 0.9])
    assert spread_out([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])


def test_losses_of_different_magnitude_get_a_logarithmic_axis(results: Results) -> None:
    curves = results.curves.copy()
    assert axes_of(results, "loss").get_yscale() == "linear"
    curves[:, 0, :, TOTALS.index("regret")] *= 1e6
    assert axes_of(replace(results, curves=curves), "loss").get_yscale() == "symlog"


def test_a_png_is_large_enough_and_says_where_it_comes_from(results: Results, tmp_path: Path) -> None:
    path = plot(results, tmp_path / "figure.png")
    height, width = imread(path).shape[:2]
    assert width > 1400
    assert height > 800
    with Image.open(path) as image:
        about = json.loads(image.info["Description"])
    assert about == json.loads(json.dumps(results.provenance))


def test_an_svg_has_its_names_as_text_and_says_where_it_comes_from(results: Results, tmp_path: Path) -> None:
    tree = ElementTree.parse(plot(results, tmp_path / "figure.svg"))
    words = " ".join(tree.getroot().itertext())
    for policy in LIST:
        assert policy in words
    assert json.dumps(results.provenance) in words


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_results_make_the_same_file(results: Results, tmp_path: Path, suffix: str) -> None:
    files = [plot(results, tmp_path / f"{name}{suffix}", "ratio").read_bytes() for name in "ab"]
    assert files[0] == files[1]


def test_what_cannot_be_drawn_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"figure\.pdf: figures are saved as \.png or \.svg"):
        plot(results, tmp_path / "figure.pdf")
    with pytest.raises(BadParameter, match="measure = 'regrets'"):
        plot(results, tmp_path / "figure.png", "regrets")
    none = replace(results, runs=results.runs[:0], curves=results.curves[:0])
    with pytest.raises(BadParameter, match="no run is finished"):
        plot(none, tmp_path / "figure.png")


def test_one_task_and_one_run_can_be_drawn(tmp_path: Path) -> None:
    tiny = simulate(seven_kinds(), ["oracle", "optimum"], tasks=1, runs=1, engine="python")
    for measure in ("loss", "ratio"):
        assert plot(tiny, tmp_path / f"{measure}.png", measure).stat().st_size > 10_000


def test_drawing_leaves_matplotlibs_global_state_alone(tmp_path: Path) -> None:
    script = f"""
import sys
from worthwhile import simulate, two_kinds
from worthwhile.simulation.loop import TOTALS
from worthwhile.plots import plot
assert "matplotlib" not in sys.modules
results = simulate(two_kinds(), tasks=50, runs=2, engine="python")
from matplotlib import rcParams
names = [name for name in rcParams if name != "backend"]  # reading the backend would choose one
before = [rcParams[name] for name in names]
plot(results, {str(tmp_path / "figure.svg")!r})
assert [rcParams[name] for name in names] == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", script], check=True, timeout=NET
    )
