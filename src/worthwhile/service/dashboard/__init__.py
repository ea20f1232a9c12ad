"""The page people leave open: rendered here, refreshed by a few lines of script."""

from __future__ import annotations

from worthwhile.service.answering import Endpoint

PAGES: tuple[Endpoint, ...] = ()
