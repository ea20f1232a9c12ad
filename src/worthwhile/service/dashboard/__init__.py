"""The page people leave open: rendered here, refreshed by a few lines of script."""

from worthwhile.service.dashboard.pages import PAGES

__all__ = ["PAGES"]
