"""Make the README's pictures from a real run: the demo's figure, and its dashboard as a browser shows it.

    python tools/pictures.py results/demo docs

It needs Chromium and its driver, as the dashboard's tests do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1")
WIDTH, HEIGHT = 1280, 1400  # of the page that is shown: the rest is for those who open it
PATIENCE = 60  # seconds until a page has to be there
COLOURS = 128  # enough for a page of text and lines, and a quarter of the size


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address of a dashboard on that store."""
    command = [sys.executable, "-m", "worthwhile", "serve", "--store", str(store), "--port", "0", "--no-access-log"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield next(found[0] for line in process.stderr if (found := re.search(r"http://\S+:\d+", line)))
        finally:
            process.terminate()


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def save_page(address: str, path: Path) -> None:
    """The upper part of a page, once it is loaded."""
    with browser() as driver:
        driver.get(address)
        WebDriverWait(driver, PATIENCE).until(
            lambda page: page.execute_script(
                "return document.readyState === 'complete' && document.fonts.status === 'loaded'"
            )
        )
        driver.save_screenshot(str(path))
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def main(run: Path, out: Path) -> None:
    shutil.copyfile(run / "figure.png", out / "demo.png")
    shutil.copyfile(run / "report.txt", out / "measurements" / "demo.txt")
    with served(run / "tasks.db") as address:
        save_page(address, out / "dashboard.png")
    print(f"saved: {out / 'demo.png'}, {out / 'dashboard.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
