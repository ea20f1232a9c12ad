"""What tests of the dashboard do in a browser."""

from __future__ import annotations

from typing import Any

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from waiting import NET


def until(browser: Any, condition: Any) -> Any:
    return WebDriverWait(browser, NET).until(condition)


def text(browser: Any, selector: str) -> str:
    found: str = browser.find_element(By.CSS_SELECTOR, selector).text
    return found


def complaints(browser: Any) -> list[Any]:
    """What the console has complained about."""
    return [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


def confirm(browser: Any, button: str, words: str) -> None:
    """Press a button, read what is asked, say yes, and wait for the page to come back."""
    browser.find_element(By.CSS_SELECTOR, button).click()
    until(browser, lambda page: page.find_element(By.ID, "confirm").is_displayed())
    assert words in text(browser, "#confirm")
    browser.execute_script("window.before = true")
    browser.find_element(By.ID, "confirm-yes").click()
    until(browser, lambda page: page.execute_script("return window.before !== true"))
    until(browser, lambda page: page.find_elements(By.ID, "confirm"))
