"""The page people leave open: rendered here, refreshed by a few lines of script."""

from worthwhile.service.dashboard.pages import PAGES
from worthwhile.service.dashboard.rendering import error_page

__all__ = ["PAGES", "error_page"]
