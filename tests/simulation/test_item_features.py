"""Features of the items of a recorded table, and one pass through them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from worthwhile.cli.main import main
from worthwhile.errors import BadParameter, BadTable
from worthwhile.policies.features import feature_number
from worthwhile.simulation.environments import Environment, replay
from worthwhile.simulation.environments.replay import ReplayWorld
from worthwhile.simulation.simulator import simulate
from worthwhile.tables import read_table
from worthwhile.testing import check_environment

TABLE = "task_type,item_id,option,reward,cost\n" + "".join(
    f"{kind},{item},{option},{10 * number + place},{place + 1}\n"
    for kind, items in (("x", "pqr"), ("y", "ps"))
    for number, item in enumerate(items)
    for place, option in enumerate("ab")
)
FEATURES = "item_id,size,easy,family\np,1.5,true,crypto\nq,,false,\nr,-3,,crypto\ns,4e2,TRUE,sat\n"
NUMBERS = [  # of x: p, q, r; of y: p, s
    [1.5, 1.0, feature_number("crypto")],
    [np.nan, 0.0, np.nan],
    [-3.0, np.nan, feature_number("crypto")],
    [1.5, 1.0, feature_number("crypto")],
    [400.0, 1.0, feature_number("sat")],
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path, TABLE, "table.csv")


def written(folder: Path, text: str, name: str = "items.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def world_of(environment: Environment) -> ReplayWorld:
    assert isinstance(environment.world, ReplayWorld)
    return environment.world


def known(table: Path, features: Path | None, **settings: Any) -> Any:
    return world_of(replay(table, features=features, **settings)).known


def test_numbers_truths_texts_and_gaps_are_read_from_csv(tmp_path: Path, table: Path) -> None:
    assert np.array_equal(known(table, written(tmp_path, FEATURES)), NUMBERS, equal_nan=True)


def test_every_task_comes_with_the_features_of_its_item(tmp_path: Path, table: Path) -> None:
    environment = replay(table, features=written(tmp_path, FEATURES))
    world, starts = world_of(environment), (0, 3)
    kinds, latents = world.draw(np.random.default_rng(0), 200)
    for kind, latent in zip(kinds.tolist(), latents, strict=True):
        item = int(world.feedback(kind, 0, latent)[0] / 10)
        assert np.array_equal(world.features(kind, latent), NUMBERS[starts[kind] + item], equal_nan=True)
    check_environment(environment)


def test_parquet_and_json_lines_say_the_same(tmp_path: Path, table: Path) -> None:
    columns = {
        "item_id": ["s", "r", "q", "p"],
        "size": [400, -3, None, 1.5],
        "easy": [True, None, False, True],
        "family": ["sat", "crypto", None, "crypto"],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "items.parquet")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "items.jsonl")
    for path in (tmp_path / "items.parquet", lines):
        assert np.array_equal(known(table, path), NUMBERS, equal_nan=True)


def test_an_item_may_be_named_by_its_kind_as_well(tmp_path: Path, table: Path) -> None:
    text = "kind,key,size\nx,p,1\nx,q,2\nx,r,3\ny,p,4\ny,s,5\n"
    assert known(table, written(tmp_path, text)).tolist() == [[1.0], [2.0], [3.0], [4.0], [5.0]]


def test_items_without_a_row_have_nothing_and_are_counted(
    tmp_path: Path, table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = known(table, written(tmp_path, "item_id,size\np,1\nother,2\n"))
    assert np.array_equal(found[:, 0], [1.0, np.nan, np.nan, 1.0, np.nan], equal_nan=True)
    assert "no row for 3 of 5 items; their features are missing" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,size\np,1\nq,2\np,3\n", r"items.csv, row 4: item 'p' is already in row 2; every item has one row"),
        ("size\n1\n", r"no column item_id"),
        ("item_id\np\n", r"0 features; there must be at least one, and at most 256"),
        ("item_id,size\nelse,1\n", r"no item of table is in it"),
        ("item_id,size\np,inf\n", r"column size, row 2: inf; a feature is at most 1e\+100"),
        ("item_id,size\np,1e200\n", r"column size, row 2: 1e\+200"),
        ("item_id," + ",".join(f"f{n}" for n in range(257)) + "\np" + ",1" * 257, r"257 features; .* at most 256"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, table: Path, text: str, message: str) -> None:
    with pytest.raises(BadTable, match=message):
        known(table, written(tmp_path, text))


def test_a_date_is_no_feature(tmp_path: Path, table: Path) -> None:
    when = pyarrow.array([0, 1], pyarrow.timestamp("s"))
    pyarrow.parquet.write_table(pyarrow.table({"item_id": ["p", "q"], "when": when}), tmp_path / "items.parquet")
    with pytest.raises(BadTable, match=r"column when, row 1: .* is neither a number nor true, false or a text"):
        known(table, tmp_path / "items.parquet")


def test_a_table_that_is_not_crossed_has_no_items_to_know_of(tmp_path: Path) -> None:
    table = written(tmp_path, TABLE + "x,extra,a,1,1\n", "table.csv")
    with pytest.raises(BadTable, match=r"nobody can say which item it is; leave the features out"):
        replay(table, features=written(tmp_path, FEATURES))
    with pytest.raises(BadTable, match=r"nobody can say which item it is; leave one_pass out"):
        replay(table, one_pass=True)


def with_column(path: Path, features: dict[str, str], extra: str = "") -> Path:
    """The table with a column of JSON objects, as `export` writes it."""
    lines = path.read_text().splitlines()
    rows = [line + ',"' + features.get(line.split(",")[1], "").replace('"', '""') + '"' for line in lines[1:]]
    return written(path.parent, "\n".join([lines[0] + ",features", *rows]) + "\n" + extra, "export.csv")


def test_a_column_of_json_objects_is_taken_from_the_table_itself(table: Path) -> None:
    path = with_column(table, {"p": '{"size": 1.5, "easy": true}', "r": '{"family": "crypto", "size": null}'})
    expected = np.full((5, 3), np.nan)
    expected[[0, 3], :2] = 1.5, 1.0
    expected[2, 2] = feature_number("crypto")
    assert np.array_equal(known(path, None), expected, equal_nan=True)
    file = written(table.parent, FEATURES)  # goes first
    assert np.array_equal(known(path, file), NUMBERS, equal_nan=True)
    assert known(with_column(table, {}), None).shape == (5, 0)


def test_a_column_that_says_nonsense_or_contradicts_itself_is_refused(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("[1]", "{", "12"):
        with pytest.raises(BadTable, match=r"row 1: features = .*; they are a JSON object"):
            replay(with_column(table, {"p": text}))
    with pytest.raises(BadTable, match=r"column features, 'size': \[1\] is neither"):
        replay(with_column(table, {"p": '{"size": [1]}'}))
    path = with_column(table, {"p": '{"size": 1}'})
    path.write_text(path.read_text().replace("{", "{ ", 1).replace(": 1}", ": 2}", 1))
    with pytest.raises(BadTable, match=r"rows 1 and 2 are about one task, 'p', but have other features"):
        replay(path)
    path = with_column(table, {"p": '{"size": 1}'}, 'x,extra,a,1,1,"{}"\n')
    assert known(path, None).size == 0
    assert "its features are left out; not every item" in caplog.text


def test_kinds_that_are_left_out_take_their_items_along(tmp_path: Path) -> None:
    text = TABLE.replace("cost\n", "cost,outcome\n").replace("1\n", "1,result\n").replace(",2\n", ",2,result\n")
    text += "w,p,a,,1,failed\nw,p,b,,1,failed\n"
    table = written(tmp_path, text, "table.csv")
    assert len(read_table(table).kinds) == 3
    assert np.array_equal(known(table, written(tmp_path, FEATURES)), NUMBERS, equal_nan=True)


def test_one_pass_has_every_item_once_in_an_order_of_its_own(tmp_path: Path, table: Path) -> None:
    environment = replay(table, features=written(tmp_path, FEATURES), one_pass=True)
    world = world_of(environment)
    assert environment.most_tasks == 5
    orders = set()
    for seed in range(20):
        kinds, latents = world.draw(np.random.default_rng(seed), 5)
        tasks = [(int(k), world.feedback(k, 0, latent)[0]) for k, latent in zip(kinds, latents, strict=True)]
        assert sorted(tasks) == [(0, 0.0), (0, 10.0), (0, 20.0), (1, 0.0), (1, 10.0)]
        orders.add(tuple(tasks))
    assert len(orders) > 10
    assert len(world.draw(np.random.default_rng(0), 3)[0]) == 3
    check_environment(environment)


def test_one_pass_earns_what_the_table_holds(table: Path) -> None:
    environment = replay(table, one_pass=True)
    results = simulate(environment, ["fixed-option,option=b"], 5, 3, engine="python")
    assert results.measure("reward")[:, 0, -1].tolist() == [45.0] * 3
    with pytest.raises(BadParameter, match=r"6 tasks, but 'table' has only 5, each to come once; ask for fewer"):
        simulate(environment, ["random-option"], 6, 1, engine="python")
    with pytest.raises(BadParameter, match=r"one_pass and arrival"):
        replay(table, arrival={"x": 1.0}, one_pass=True)


def test_one_pass_through_more_items_than_a_block_has_repeats_none(
    monkeypatch: pytest.MonkeyPatch, table: Path
) -> None:
    monkeypatch.setattr("worthwhile.simulation.runs.BLOCK", 2)
    results = simulate(replay(table, one_pass=True), ["fixed-option,option=b"], 5, 3, engine="python")
    assert results.measure("reward")[:, 0, -1].tolist() == [45.0] * 3


def test_the_command_line_takes_features_and_one_pass(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["replay", str(table), "--features", str(written(tmp_path, FEATURES)), "--engine", "python", "--json"]
    usual = [*command, "--policy", "random-option", "--runs", "2"]
    assert main([*usual, "--one-pass"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 5
    assert main([*usual, "--tasks", "30"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 30
    assert main([*usual, "--one-pass", "--tasks", "30"]) == 2
    assert "has only 5" in capsys.readouterr().err
