"""The service: a store's schedulers over HTTP, and a page that shows what they have learned. Extra `service`.

A request's way: `edge` measures and logs it, `access` lets it in, `routes` answers it, `desk` hands it to its scheduler
together with whatever else has come in meanwhile. `description` tells others about it, `dashboard` shows it to people.
"""
