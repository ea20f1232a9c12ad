"""The service: a store's schedulers over HTTP, and a page that shows what they have learned. Extra `service`.

A request's way: `middleware` measures and logs it, `auth` lets it in, `routes` answers it, `dispatcher` hands it to its
scheduler together with whatever else has come in meanwhile. `openapi` describes it, `dashboard` shows it to people.
"""

from __future__ import annotations

from importlib.util import find_spec

from worthwhile.errors import MissingExtra

if find_spec("msgspec") is None:
    raise MissingExtra("the service, or a client of it,", "service")
