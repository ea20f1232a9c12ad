"""Faces: the dashboard in a real browser. It needs Chromium and its driver; `make test` installs them on Debian."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from featured import solve
from service_process import ServiceProcess, store_at
from waiting import NET
from worthwhile import Client, Scheduler
from worthwhile.live.requests import Deciding, Reporting
from worthwhile.live.stores import open_store
from worthwhile.service.tokens import create_token

pytestmark = pytest.mark.slow

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1280,1000",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
REMEDY = "no {}; install it: apt-get install chromium chromium-driver, or your system's packages of these names"
SIZES = {"wide": (1280, 1000), "phone": (390, 844), "small": (360, 740)}
SIDEWAYS = "return [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"


def program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    assert found is not None, REMEDY.format(names[0])
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    one = webdriver.Chrome(options, Service(program("chromedriver")))
    one.set_script_timeout(NET)
    yield one
    one.quit()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    store = store_at(tmp_path_factory.mktemp("browser"))
    with Scheduler(store, "busy") as scheduler:
        fill(scheduler, 100_000)
    with Scheduler(store, "wide") as scheduler:
        for kind in range(100):
            scheduler._transactor.ask_all([Deciding(scheduler, f"kind {kind}", [option]) for option in range(100)])
    with Scheduler(store, "failing", seed=0) as scheduler:
        fail_often(scheduler)
    with Scheduler(store, "featured") as scheduler:
        use_features(scheduler)
    with Scheduler(store, "by features", seed=3) as scheduler:
        solve(scheduler, 400)
    with ServiceProcess(store, "--no-access-log") as running:
        yield running


def fail_often(scheduler: Scheduler) -> None:
    """Options that never, sometimes and always fail, and a kind in which nothing works."""
    for place in range(60):
        task = scheduler.decide("weather", ["good", "so-so", "broken"])
        if task.option == "broken" or (task.option == "so-so" and place % 2):
            task.fail(0.5, f"KeyError: {'no such column ' * 5}")
        else:
            task.report(1.0, 1.0)
    for _ in range(5):
        scheduler.decide("impossible", ["a", "b"]).fail(1.0, "TimeoutError")
    scheduler.decide("impossible", ["a", "b"], key="twice").fail(1.0, "TimeoutError")
    scheduler.again("66")


def use_features(scheduler: Scheduler) -> None:
    """Nearly as much as features may be, with names and texts that have no place to break a line."""
    many = {f"feature {place}": place for place in range(150)}
    known = many | {"x" * 200: "y" * 200, "<b>bold</b>": "<script>alert(1)</script>", "gpu": True}
    scheduler.decide("sat", ["kissat", "minisat"], features=known).report(1.0, 2.0)


def fill(scheduler: Scheduler, tasks: int) -> None:
    """So many tasks, in large batches."""
    for _ in range(tasks // 2000):
        asked = [Deciding(scheduler, f"kind {place % 3}", [1, 5, 10]) for place in range(2000)]
        scheduler._transactor.ask_all(asked)
        rows = [(one.answer.id, one.answer.option) for one in asked]
        reports = [Reporting(id, int(id) % 7 / 7 + option / 10, 1.0 + option) for id, option in rows]
        scheduler._transactor.ask_all(reports)


def until(browser: Any, condition: Any) -> Any:
    return WebDriverWait(browser, NET).until(condition)


def text(browser: Any, selector: str) -> str:
    found: str = browser.find_element(By.CSS_SELECTOR, selector).text
    return found


def complaints(browser: Any) -> list[Any]:
    """What the console has complained about."""
    return [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


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
    link = browser.find_element(By.CSS_SELECTOR, "#why-100000")
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


def test_a_hundred_thousand_tasks_and_a_hundred_by_a_hundred(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/busy")
    assert "100,000" in text(browser, "#totals")
    assert "achieved" in browser.find_element(By.CSS_SELECTOR, ".chart.wide").get_attribute("textContent")
    browser.get(f"{service.url}/schedulers/wide")
    assert len(browser.find_elements(By.CSS_SELECTOR, "article.kind")) == 10
    browser.find_element(By.ID, "more-kinds").click()
    until(browser, lambda page: len(page.find_elements(By.CSS_SELECTOR, "article.kind")) == 100)
    assert not browser.find_elements(By.ID, "more-kinds")
    browser.find_element(By.ID, "options-7").click()
    until(browser, lambda page: len(page.find_elements(By.CSS_SELECTOR, "article.kind")) == 1)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".options tbody tr")) == 100
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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_and_nothing_has_to_be_moved_sideways(
    browser: Any, service: ServiceProcess, size: str, scheme: str
) -> None:
    spec = importlib.util.find_spec("axe_core_python")
    assert spec is not None
    assert spec.origin is not None
    axe = (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size != "wide"}
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        for path in (
            "/", "/schedulers/busy", "/schedulers/wide", "/schedulers/failing", "/schedulers/busy/tasks/5000",
            "/schedulers/failing/tasks/66", "/schedulers/featured/tasks/1",
            "/schedulers/by%20features", "/schedulers/by%20features/tasks/400", "/docs",
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
