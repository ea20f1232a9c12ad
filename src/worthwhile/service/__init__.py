"""The service: a store's schedulers over HTTP, and a page that shows what they have learned. Extra `service`.

A request's way: `edge` measures and logs it, `access` lets it in, `routes` answers it, `desk` hands it to its scheduler
together with whatever else has come in meanwhile. `description` tells others about it, `dashboard` shows it to people.
"""

from __future__ import annotations

from importlib.util import find_spec

from worthwhile.errors import MissingExtra

if find_spec("msgspec") is None:
    raise MissingExtra("the service, or a client of it,", "service")
