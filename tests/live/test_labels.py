"""Units and declared names: stored with the scheduler, and what was not declared is refused with what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from worthwhile import Scheduler
from worthwhile.errors import BadParameter, BadTask, Undeclared
from worthwhile.live.settings import Settings, settings_from

TRAINING = {"weather": [1, 5, 10], "rice": ["small", None]}


def test_what_was_not_declared_is_refused_with_what_was_meant(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        scheduler.declare(TRAINING)
    with Scheduler(durable) as scheduler:  # stored with the scheduler
        scheduler.decide("weather", [10, 1]).report(1.0, 1.0)
        for kind, options, words in (
            ("wether", [1], "kind 'wether' was not declared; did you mean weather?"),
            ("weather", [1, 11], "option 11 for kind 'weather' was not declared; did you mean 1?"),
            ("weather", ["small"], "option \"small\" for kind 'weather' was not declared; declared are: 1, 5, 10. If"),
            ("rice", ["smal"], 'did you mean "small"?'),
        ):
            with pytest.raises(Undeclared) as refused:
                scheduler.decide(kind, options)
            assert words in str(refused.value)
        with pytest.raises(Undeclared, match="option 50 was not declared"):
            scheduler.retire(50)
        scheduler.retire("small")
        assert scheduler.summary().tasks == 1
        scheduler.declare({})
        scheduler.decide("wether", [11])


def test_a_declaration_reaches_those_who_use_the_scheduler_already(durable: str) -> None:
    with Scheduler(durable) as one, Scheduler(durable) as other:
        one.decide("weather", [2])
        other.declare({"weather": [1]})
        with pytest.raises(Undeclared):
            one.decide("weather", [2])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (["weather"], BadParameter, "is no mapping; give every kind its options"),
        ({"weather": "abc"}, BadTask, "give a list of options"),
        ({"weather": []}, BadTask, "no options"),
        ({"weather": [1, 1]}, BadTask, "offered twice"),
        ({"": [1]}, BadTask, "kind ''"),
    ],
)
def test_a_bad_declaration_is_refused(options: Any, error: type[Exception], words: str) -> None:
    with Scheduler() as scheduler:
        with pytest.raises(error, match=words):
            scheduler.declare(options)
        scheduler.decide("anything", [1])


def test_units_are_stored_and_shown(durable: str) -> None:
    with Scheduler(durable, reward_unit="AUC", cost_unit="s") as scheduler:
        scheduler.decide("weather", [1]).report(0.9, 3.0)
    with Scheduler(durable) as scheduler:
        summary = scheduler.summary()
        assert (summary.reward_unit, summary.cost_unit, summary.ratio_unit) == ("AUC", "s", "AUC/s")
        assert "reward / cost = 0.30000 AUC/s  (Σ 0.90000 AUC / 3.0000 s)" in str(summary)
        assert "reward (AUC)  cost (s)" in str(summary)
        scheduler.change(cost_unit="")
        assert scheduler.summary().ratio_unit == "AUC/1"
    Scheduler(durable, reward_unit="AUC").close()
    with pytest.raises(BadParameter, match="has reward_unit 'AUC' and cost_unit ''; leave these out"):
        Scheduler(durable, cost_unit="min")
    for wrong in (5, "a\nb", "x" * 41):
        with pytest.raises(BadParameter, match="cost_unit = "):
            Scheduler(durable, cost_unit=wrong)  # type: ignore[arg-type]


def test_settings_that_were_never_set_are_not_written() -> None:
    assert settings_from(Settings(1).text()) == Settings(1)
    assert "units" not in Settings(1).text()
    assert "declared" not in Settings(1).text()
    told = Settings(1, declared={"weather": ("1", "5")})
    assert settings_from(told.text()) == told
    for damage in ('"units": [1, 2]', '"units": ["s"]', '"declared": [1]', '"declared": {"a": [1]}'):
        with pytest.raises(ValueError, match="settings = "):
            settings_from(Settings(1).text().replace("{", f"{{{damage}, ", 1))


def test_a_summary_is_a_table_and_a_figure(tmp_path: Path) -> None:
    with Scheduler(reward_unit="AUC") as scheduler:
        for _ in range(6):
            scheduler.decide("weather $1", ["a", "b"]).report(0.5, 2.0)
        scheduler.decide("rice", ["a"]).fail(1.0)
        frame = scheduler.summary().to_pandas()
        assert frame.groupby("kind")["pulls"].sum().to_dict() == {"rice": 1, "weather $1": 6}
        left, right = scheduler.plot().axes
        assert left.lines[0].get_ydata()[-1] == pytest.approx(3.0 / 13.0)
        assert left.get_ylabel() == "reward / cost (AUC/1)"
        assert sorted(label.get_text()[:14] for label in right.get_yticklabels()) == [r"weather \$1 / "] * 2
        assert scheduler.plot(tmp_path / "it.svg").read_text().startswith("<?xml")
        with pytest.raises(BadParameter, match=r"a figure ends in .png"):
            scheduler.plot(tmp_path / "it.gif")
    with Scheduler() as scheduler:
        scheduler.plot(tmp_path / "nothing.png")
        assert len(scheduler.summary().to_pandas()) == 0
