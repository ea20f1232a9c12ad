"""A progress bar for work of more than a second: tqdm where it is installed and a person is watching."""

from __future__ import annotations

import sys
import threading
from typing import Any


class Progress:
    """Counts work done, from any thread; shown on standard error after one second."""

    def __init__(self, total: int, shown: bool | None = None, unit: str = " tasks") -> None:
        self.lock = threading.Lock()
        self.bar: Any = None
        if shown or (shown is None and sys.stderr.isatty()):
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=total, unit=unit, unit_scale=True, delay=1.0, leave=False, dynamic_ncols=True)

    def add(self, done: int) -> None:
        """So much more is done."""
        if self.bar is not None:
            with self.lock:
                self.bar.update(done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
