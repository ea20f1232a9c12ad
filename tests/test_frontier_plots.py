"""The figure of a goal: points and lines are where the numbers say, and every file says where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from test_optimum import problems
from worthwhile import solve, two_kinds
from worthwhile.cli.main import main
from worthwhile.errors import BadParameter
from worthwhile.goals.frontier import frontier_of
from worthwhile.optimum import Optimum
from worthwhile.plots import GREEN, ORANGE
from worthwhile.plots.frontier import draw_frontier, plot_frontier
from worthwhile.problem import Problem

MODELS = Problem.of(
    {
        "summary": (0.6, {"small": (0.45, 0.1), "medium": (0.82, 0.4), "large": (0.9, 1.2)}),
        "legal review": (0.4, {"small": (0.05, 0.1), "medium": (0.3, 0.4), "large": (0.8, 1.2)}),
    },
    name="models",
    reward_unit="right",
    cost_unit="cent",
)


def axes_of(problem: Problem, best: Optimum) -> Any:
    """The axes of a figure that is drawn but not saved."""
    figure = draw_frontier(problem, best)
    FigureCanvasAgg(figure).draw()
    return figure.axes[0]


def legend_of(axes: Any) -> dict[str, Any]:
    """Lines and points by what the legend says of them, up to the colon."""
    handles, labels = axes.get_legend_handles_labels()
    return {label.split(":")[0]: handle for handle, label in zip(handles, labels, strict=True)}


def point(handle: Any) -> tuple[float, float]:
    (x,), (y,) = handle.get_data()
    return float(x), float(y)


def test_points_and_lines_lie_where_the_numbers_say() -> None:
    best = solve(MODELS, goal="cost", floor=0.7, budget=0.9)
    axes = axes_of(MODELS, best)
    drawn, bends = legend_of(axes), frontier_of(best.means)
    assert drawn["the frontier"].get_xdata() == pytest.approx(bends.cost)
    assert drawn["the frontier"].get_ydata() == pytest.approx(bends.reward)
    free, floor, budget = solve(MODELS), solve(MODELS, floor=0.7), solve(MODELS, budget=0.9)
    assert point(drawn["best ratio 2.9 right/cent"]) == pytest.approx((free.cost, free.reward))
    assert point(drawn["least cost above the floor"]) == pytest.approx((floor.cost, 0.7))
    assert point(drawn["most reward within the budget"]) == pytest.approx((0.9, budget.reward))
    assert point(drawn["this goal"]) == pytest.approx((best.cost, best.reward))
    tangents = [line.get_data() for line in axes.lines if line.get_color() in (ORANGE, GREEN) and line.get_ls() == "-"]
    slopes = [(high - low) / (right - left) for (left, right), (low, high) in tangents]
    assert slopes == pytest.approx([floor.prices[0], budget.prices[0]])


def test_what_is_said_has_units_and_names() -> None:
    axes = axes_of(MODELS, solve(MODELS, goal="ratio", floor=0.7, budget=0.9))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("mean cost per task (cent)", "mean reward per task (right)")
    said = {text.get_text() for text in axes.texts}
    assert {"always small", "always medium", "always large", "floor 0.7 right", "budget 0.9 cent"} <= said
    words = "best ratio with mean reward ≥ 0.7 right and mean cost per task ≤ 0.9 cent"
    assert axes.get_title(loc="right") == words


def test_a_limit_out_of_reach_is_called_so_and_kinds_with_prices_of_their_own_have_none_together() -> None:
    drawn = legend_of(axes_of(MODELS, solve(MODELS, goal="reward", floor=0.99, budget=0.01)))
    assert "out of reach, most reward" in drawn
    assert "out of reach, least cost" in drawn
    axes = axes_of(MODELS, solve(MODELS, floor={"summary": 0.8}))
    assert "price" not in " ".join(axes.get_legend_handles_labels()[1])


@given(problems())
def test_whatever_is_drawn_lies_within_the_axes(problem: Problem) -> None:
    best = solve(problem, budget=1.0)
    axes = axes_of(problem, best)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for label, handle in legend_of(axes).items():
        for x, y in zip(*handle.get_data(), strict=True):
            assert left <= x <= right, label
            assert low <= y <= high, label


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_goal_makes_the_same_file_which_says_where_it_comes_from(tmp_path: Path, suffix: str) -> None:
    problem = two_kinds(0.8)
    paths = [plot_frontier(problem, solve(problem, floor=2.7), tmp_path / f"{name}{suffix}") for name in "ab"]
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    if suffix == ".png":
        with Image.open(paths[0]) as image:
            about = json.loads(image.info["Description"])
        assert about["goal"] == {"goal": "cost", "floor": 2.7, "budget": None}


def test_solve_saves_the_figure_and_refuses_other_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "deep" / "goal.png"
    assert main(["solve", "seven-kinds", "--budget", "1.2", "--plot", str(path)]) == 0
    assert capsys.readouterr().err == f"worthwhile: saved {path}\n"
    with Image.open(path) as image:
        assert image.width > 1000
    assert main(["solve", "seven-kinds", "--plot", str(tmp_path / "goal.txt")]) == 2
    assert "must end in .png or .svg" in capsys.readouterr().err
    with pytest.raises(BadParameter, match=r"figures are saved as \.png or \.svg"):
        plot_frontier(two_kinds(), solve(two_kinds()), tmp_path / "goal.pdf")
