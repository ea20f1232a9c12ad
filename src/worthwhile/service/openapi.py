"""The OpenAPI 3.1 description, made from the table of endpoints and their message types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from worthwhile import __version__
from worthwhile.service.endpoint import Endpoint
from worthwhile.service.schemas import Problem

REFUSALS = {
    "400": "a request that cannot be read",
    "401": "no token, or one that is not known",
    "403": "a token without the scope, or another site's page",
    "404": "no such scheduler or task",
    "409": "reported or cancelled before",
    "413": "a body of more than 1 MB",
    "415": "another content type than application/json",
    "422": "a value that cannot be used",
    "503": "busy, or the store is away; repeat it after Retry-After seconds",
}
WHAT = "Decide for real tasks, report what came of them, and learn to earn the most reward per cost."


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole service in OpenAPI's words."""
    types = [kind for one in endpoints for kind in (one.takes, one.query, one.gives) if kind is not None]
    unique = [kind for place, kind in enumerate([*types, Problem]) if kind not in [*types, Problem][:place]]
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    by_type = list(zip(unique, schemas, strict=True))

    def schema(kind: Any) -> dict[str, Any]:
        return next(found for known, found in by_type if known == kind)

    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = operation(one, schema, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "worthwhile", "version": __version__, "description": WHAT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def operation(one: Endpoint, schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    """One method of one path."""
    answer: dict[str, Any] = {"description": "done"}
    answer["content"] = {kind: {"schema": schema(one.gives)} if one.gives is not None else {} for kind in one.kinds}
    found: dict[str, Any] = {
        "summary": one.says,
        "description": f"Needs a token with the scope {one.scope}." if one.scope != "none" else "Open to all.",
        "operationId": one.run.__name__,
        "parameters": [in_path(name) for name in re.findall(r"{(\w+)}", one.path)],
        "responses": {str(one.status): answer} | {status: refusal(why) for status, why in REFUSALS.items()},
    }
    if one.scope == "none":
        found["security"] = []
    if one.takes is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema(one.takes)}}}
        found["parameters"].append(
            {
                "name": "Idempotency-Key", "in": "header", "required": False,
                "description": "repeats are safe: for decisions it is the key, everything else counts once anyway",
                "schema": {"type": "string", "minLength": 1, "maxLength": 190, "pattern": "^[!-~]+$"},
            }
        )  # fmt: skip
    if one.query is not None:
        fields = components[one.query.__name__]["properties"]
        found["parameters"] += [
            {"name": name, "in": "query", "required": False, "schema": kind} for name, kind in fields.items()
        ]
    return found


def in_path(name: str) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
    if name == "task":
        kind = {"type": "string", "pattern": "^[0-9]{1,15}$"}
    return {"name": name, "in": "path", "required": True, "schema": kind}


def refusal(why: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": why, "content": content}
