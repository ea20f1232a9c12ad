"""Faces: the dashboard in a real browser. It needs Chromium and its driver; `make test` installs them on Debian."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from browsing import complaints, text, until
from service_process import ServiceProcess, store_at
from worthwhile import Client
from worthwhile.live.stores import open_store
from worthwhile.service.tokens import create_token

pytestmark = pytest.mark.slow

LOOKS = {"wide": (1280, 1000, "light"), "small": (360, 740, "dark")}
SIDEWAYS = "return [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"

OUTSIDE = """
const chart = document.querySelector(".chart.wide"), frame = chart.viewBox.baseVal;
return [...chart.querySelectorAll("path, text")].map((one) => [one.textContent, one.getBBox()]).filter(([name, box]) =>
  box.y < 0 || box.x < 0 || box.y + box.height > frame.height || box.x + box.width > frame.width + 1);
"""  # what is drawn beyond the edge


def test_a_task_arrives_and_its_report_changes_the_numbers(browser: Any, service: ServiceProcess) -> None:
    with Client(service.url, name="watched", policy="ratio-imed") as client:
        browser.get(f"{service.url}/schedulers/watched")
        assert "Waiting for the first task" in text(browser, "main")
        browser.execute_script("window.samepage = true")
        task = client.decide("weather", [1, 5, 10])
        until(browser, lambda page: "running" in text(page, "#recent"))
        assert "Waiting" not in text(browser, "main")
        task.report(0.75, 3.0)
        until(browser, lambda page: "0.2500" in text(page, "#totals"))
        assert "only 1 has been tried" in text(browser, "#kinds")
        assert browser.execute_script("return window.samepage") is True  # it was never loaded again
    assert complaints(browser) == []


def test_a_decision_is_explained_by_keyboard(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/busy")
    link = browser.find_element(By.CSS_SELECTOR, "#why-20000")
    browser.execute_script("arguments[0].focus()", link)
    assert browser.switch_to.active_element == link
    link.send_keys("\n")
    until(browser, lambda page: page.find_elements(By.ID, "why-title"))
    assert text(browser, ".why").startswith("Because ")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".options tbody tr")) == 3
    assert complaints(browser) == []


def test_failures_are_red_and_no_option_wins_by_them(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/failing")
    until(browser, lambda page: text(page, "#status") == "live")
    dots = "return getComputedStyle(arguments[0], '::before').backgroundColor"
    states = {
        state.text: browser.execute_script(dots, state) for state in browser.find_elements(By.CSS_SELECTOR, ".state")
    }
    live = browser.execute_script(dots, browser.find_element(By.ID, "status"))  # which is green
    assert {"failed", "running"} <= states.keys()
    assert states["failed"] not in (live, states["running"])
    stars = browser.find_elements(By.CSS_SELECTOR, "tr:has(.crown)")
    assert [star.text.split()[0] for star in stars] == ["good"]
    benched = browser.find_elements(By.CSS_SELECTOR, "tr.benched")
    assert {row.text.split()[0] for row in benched} >= {"broken"}
    assert "tried again after" in next(row.text for row in benched if row.text.startswith("broken"))
    assert "failing" in text(browser, "article.kind:last-child .chip")
    assert "NOTHING HAS SUCCEEDED YET for impossible" in text(browser, "#warnings")
    assert "if all were done" in text(browser, "#totals")
    browser.get(f"{service.url}/schedulers/failing/tasks/66")
    assert "TimeoutError" in text(browser, "section[aria-labelledby=attempts-title]")
    assert complaints(browser) == []


def test_features_are_shown_as_the_text_that_they_are(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/featured/tasks/1")
    shown = text(browser, "section[aria-labelledby=features-title]")
    assert "<b>bold</b>\n<script>alert(1)</script>" in shown
    assert "feature 149\n149" in shown
    assert complaints(browser) == []


def test_features_that_matter_have_bars(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/by%20features")
    until(browser, lambda page: text(page, "#status") == "live")
    assert "clauses" in text(browser, ".shares tbody tr:first-child th")
    fill, track = (browser.find_element(By.CSS_SELECTOR, f".shares .{part}") for part in ("fill", "track"))
    assert 0.5 < fill.size["width"] / track.size["width"] <= 1.0
    assert "more reward per cost" in text(browser, "#features")
    browser.get(f"{service.url}/schedulers/busy")
    assert text(browser, "#features") == ""
    assert complaints(browser) == []


def test_many_tasks_and_a_hundred_kinds_of_thirty_options(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/busy")
    assert "20,000" in text(browser, "#totals")
    for name in ("lately", "overall", "price θ"):
        assert name in browser.find_element(By.CSS_SELECTOR, ".chart.wide").get_attribute("textContent")
    browser.get(f"{service.url}/schedulers/wide")
    assert len(browser.find_elements(By.CSS_SELECTOR, "article.kind")) == 10
    browser.find_element(By.ID, "more-kinds").click()
    until(browser, lambda page: len(page.find_elements(By.CSS_SELECTOR, "article.kind")) == 100)
    assert not browser.find_elements(By.ID, "more-kinds")
    browser.find_element(By.ID, "options-7").click()
    until(browser, lambda page: len(page.find_elements(By.CSS_SELECTOR, "article.kind")) == 1)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".options tbody tr")) == 30
    assert complaints(browser) == []


def test_a_service_that_is_gone_is_said_and_forgiven(browser: Any, tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with ServiceProcess(store, "--no-access-log") as running:
        browser.get(running.url)
        until(browser, lambda page: text(page, "#status") == "live")
        running.kill()
        until(browser, lambda page: "not up to date" in text(page, "#status"))
        with ServiceProcess(store, "--no-access-log", port=running.port):
            until(browser, lambda page: text(page, "#status") == "live")
    browser.get_log("browser")


def test_a_token_opens_the_dashboard(browser: Any, tmp_path: Path) -> None:
    opened = open_store(store_at(tmp_path))
    token = create_token(opened, "eyes", ["read"])
    opened.close()
    with ServiceProcess(store_at(tmp_path), "--no-access-log") as running:
        browser.get(running.url)
        browser.find_element(By.ID, "token").send_keys("ww_wrong\n")
        until(browser, lambda page: "not known here" in text(page, "#problem"))
        browser.find_element(By.ID, "token").clear()
        browser.find_element(By.ID, "token").send_keys(token + "\n")
        until(browser, lambda page: page.find_elements(By.ID, "totals"))
        assert browser.execute_script("return document.cookie") == ""
        cookie = browser.get_cookie("worthwhile")
        assert token not in cookie["value"]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        browser.save_screenshot(str(tmp_path / "signed-in.png"))
        browser.find_element(By.ID, "logout").click()
        until(browser, lambda page: page.find_elements(By.ID, "token"))
        assert browser.get_cookie("worthwhile") is None
        old = {"cookie": f"worthwhile={cookie['value']}"}
        assert running.get("/schedulers/default", headers=old).status_code == 401
        browser.get("about:blank")  # it asks a service that is gone for nothing
    browser.get_log("browser")


def test_a_request_can_be_tried_on_the_page_of_the_api(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/docs")
    first = until(browser, lambda page: page.find_elements(By.CSS_SELECTOR, ".endpoint"))[0]
    first.find_element(By.TAG_NAME, "summary").click()
    first.find_element(By.TAG_NAME, "button").click()
    until(browser, lambda page: '"busy"' in first.text)
    assert complaints(browser) == []


def test_tasks_are_looked_for_paged_opened_and_downloaded(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/busy/tasks")
    browser.find_element(By.ID, "kind").send_keys("kind 1")
    browser.find_element(By.ID, "option").send_keys("5\n")
    until(browser, lambda page: "kind=kind" in page.current_url)
    cells = browser.find_elements(By.CSS_SELECTOR, "tbody td.name")
    assert {cell.text for cell in cells} == {"kind 1", "5"}
    first = text(browser, "tbody th")
    browser.find_element(By.ID, "older").click()
    until(browser, lambda page: page.find_elements(By.ID, "newest"))
    assert int(text(browser, "tbody th")) < int(first)
    download = browser.find_element(By.ID, "download").get_attribute("href")
    rows = list(csv.DictReader(io.StringIO(service.get(download.removeprefix(service.url)).text)))
    expected = sum((line["task_type"], line["option"]) == ("kind 1", "5") for line in whole_log(service, "busy"))
    assert ({(row["kind"], row["option"]) for row in rows}, len(rows)) == ({("kind 1", "5")}, expected)
    browser.find_element(By.CSS_SELECTOR, "tbody a").click()
    until(browser, lambda page: page.find_elements(By.ID, "why-title"))
    assert complaints(browser) == []


def test_a_spreadsheet_finds_no_formula_in_the_file(service: ServiceProcess) -> None:
    """Kinds, options and reasons come from whoever decides, and the file is opened by somebody else."""
    with Client(service.url, name="formulas", overhead=0.0) as client:
        client.decide("=1+1", ["@SUM(A1)"], key="-2").fail(1.0, "+cmd|calc")
        client.decide("plain = text", [-3]).report(-1.0, 1.0)
    number, text = csv.DictReader(io.StringIO(service.get("/schedulers/formulas/tasks.csv").text))
    assert (number["kind"], number["option"], number["reward"]) == ("plain = text", "-3", "-1.0")
    found = text["kind"], text["option"], text["key"], text["reason"]
    assert found == ("'=1+1", "'@SUM(A1)", "'-2", "'+cmd|calc")


def whole_log(service: ServiceProcess, name: str) -> list[Any]:
    return [json.loads(line) for line in service.get(f"/v1/schedulers/{name}/export").text.splitlines()]


def test_the_curve_has_ranges_and_stays_in_its_frame(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/changed")
    for range in ("100", "1000", "tasks", "hour", "day", "time"):
        browser.find_element(By.ID, f"range-{range}").click()
        until(browser, lambda page, wanted=f"range={range}": wanted in page.current_url or wanted == "range=tasks")
        assert text(browser, ".ranges [aria-current]") in text(browser, f"#range-{range}")
        outside = browser.execute_script(OUTSIDE)
        assert outside == [], range
    assert complaints(browser) == []


def test_all_schedulers_are_listed_with_their_state(browser: Any, service: ServiceProcess) -> None:
    browser.get(service.url)
    rows = {row.text.split()[0]: row for row in browser.find_elements(By.CSS_SELECTOR, ".listing tbody tr")}
    assert "warning" in rows["failing"].text
    assert rows["busy"].find_elements(By.CSS_SELECTOR, ".spark path")
    rows["busy"].find_element(By.TAG_NAME, "a").click()
    until(browser, lambda page: page.find_elements(By.ID, "answers"))
    assert complaints(browser) == []


def test_what_is_not_there_is_a_page(browser: Any, service: ServiceProcess) -> None:
    for path in ("/nowhere", "/schedulers/nobody", "/schedulers/busy/tasks/999999", "/schedulers/busy?range=year"):
        browser.get(service.url + path)
        assert browser.find_element(By.LINK_TEXT, "Back to the start")
    browser.get_log("browser")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_no_serious_fault_and_nothing_has_to_be_moved_sideways(
    browser: Any, service: ServiceProcess, look: str
) -> None:
    spec = importlib.util.find_spec("axe_core_python")
    assert spec is not None
    assert spec.origin is not None
    axe = (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    width, height, scheme = LOOKS[look]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": look == "small"}
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        for path in (
            "/", "/schedulers/busy", "/schedulers/failing", "/schedulers/failing/tasks/66",
            "/schedulers/featured/tasks/1", "/schedulers/by%20features", "/schedulers/by%20features/tasks/400",
            "/schedulers/busy/tasks", "/schedulers/busy/settings", "/schedulers/with%20a%20floor", "/nowhere", "/docs",
        ):  # fmt: skip
            browser.get(service.url + path)
            assert browser.execute_script(SIDEWAYS) == 0, path
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, path
            found = browser.execute_async_script(axe + "\naxe.run().then(arguments[arguments.length - 1])")
            serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
            assert [(path, one["id"], one["nodes"][0]["html"]) for one in serious] == []
            assert len(found["passes"]) > 10
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.get_log("browser")  # of the page that is not there
