"""Faces: what an admin can do on the dashboard, each thing in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsing import complaints, confirm, text, until
from service_process import ServiceProcess
from worthwhile import Client

pytestmark = pytest.mark.slow


def settings(service: ServiceProcess, name: str) -> Any:
    return service.get(f"/v1/schedulers/{name}").json()


def test_warnings_come_with_what_can_be_done(browser: Any, service: ServiceProcess) -> None:
    page = f"{service.url}/schedulers/failing"
    browser.get(page)
    retire = next(
        one for one in browser.find_elements(By.CSS_SELECTOR, "#warnings button") if "Retire broken" in one.text
    )
    confirm(browser, f"#{retire.get_attribute('id')}", "Retire broken for weather?")
    assert settings(service, "failing")["retired"] == [{"option": "broken", "kind": "weather"}]
    row = browser.find_element(By.XPATH, "//tr[th[starts-with(., 'broken')]]")
    assert "retired" in row.text
    confirm(browser, f"#{row.find_element(By.TAG_NAME, 'button').get_attribute('id')}", "Restore broken for weather?")
    assert settings(service, "failing")["retired"] == []
    browser.get(f"{service.url}/schedulers/changed")
    assert "Something has changed" in text(browser, "#warnings")
    confirm(browser, "#warnings button", "Let old evidence fade")
    assert "half_life=" in settings(service, "changed")["policy"]
    browser.get(page)
    browser.find_element(By.CSS_SELECTOR, "#warnings a[href*='state=failed']").click()
    until(browser, lambda page: page.find_elements(By.ID, "found-scroll"))
    assert {state.text for state in browser.find_elements(By.CSS_SELECTOR, ".state")} == {"failed"}
    assert complaints(browser) == []


def test_settings_are_changed_after_a_question_and_listed(browser: Any, service: ServiceProcess) -> None:
    with Client(service.url, name="set", policy="ratio-imed") as client:
        client.decide("k", ["a", "b"]).report(1.0, 1.0)
        browser.get(f"{service.url}/schedulers/set")
        assert "No baseline: name one" in text(browser, "#answers")
        browser.find_element(By.ID, "set-baseline").click()
        until(browser, lambda page: page.switch_to.active_element.get_attribute("id") == "baseline")
        browser.switch_to.active_element.send_keys("a")
        holdout = browser.find_element(By.ID, "holdout")
        holdout.clear()
        holdout.send_keys("0.25")
        confirm(browser, "#settings button", "Baseline: none → a\nHeld out: 0.0 → 0.25")
        known = settings(service, "set")
        assert (known["baseline"], known["holdout"]) == ({"": "a"}, 0.25)
        assert "settings changed" in text(browser, ".changes")
        confirm(browser, "#pause", "Every task takes its baseline until you resume.")
        assert settings(service, "set")["paused"] is True
        assert {client.decide("k", ["a", "b"]).option for _ in range(5)} == {"a"}
        browser.get(f"{service.url}/schedulers/set")
        assert "Paused." in text(browser, "#warnings")
        confirm(browser, "#resume", "as before, it holds out 25 % of the tasks")
        assert (settings(service, "set")["paused"], settings(service, "set")["holdout"]) == (False, 0.25)
    actions = [entry["action"] for entry in service.get("/v1/audit").json() if entry["scheduler"] == "set"]
    assert actions[:3] == ["resumed", "paused", "settings changed"]
    assert complaints(browser) == []


def test_what_the_service_refuses_is_said_and_escape_changes_nothing(browser: Any, service: ServiceProcess) -> None:
    browser.get(f"{service.url}/schedulers/busy/settings")
    explore = browser.find_element(By.ID, "explore")
    explore.clear()
    explore.send_keys("3\n")
    browser.find_element(By.ID, "confirm-yes").click()
    until(browser, lambda page: text(page, "#confirm-problem"))
    assert "<= 1.0" in text(browser, "#confirm-problem")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    until(browser, lambda page: not page.find_element(By.ID, "confirm").is_displayed())
    assert settings(service, "busy")["explore"] == 0.0
    browser.get_log("browser")  # it has the answer's status
