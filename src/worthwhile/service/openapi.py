"""The OpenAPI 3.1 description, made from the table of endpoints and their message types."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from worthwhile import __version__
from worthwhile.service import schemas
from worthwhile.service.endpoint import Endpoint
from worthwhile.service.schemas import Problem

REFUSALS = {
    "400": "a request that cannot be read",
    "401": "no token, or one that is not known",
    "403": "a token without the scope, or another site's page",
    "404": "no such scheduler or task",
    "409": "reported, failed or cancelled before",
    "413": "a body of more than 1 MB",
    "415": "another content type than application/json",
    "422": "a value that cannot be used",
    "503": "busy, or the store is away; repeat it after Retry-After seconds",
}
HEADER_KEY = "[!-~]{1,190}"  # ten fewer than a key may have: of many, each gets a number behind it
STATES = ["running", "reported", "failed", "cancelled", "expired"]  # of a task
ABOUT = "Decide for real tasks, report what came of them, and learn to earn the most reward per cost."


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole service in OpenAPI's words."""
    types: list[Any] = [Problem]
    for endpoint in endpoints:
        types += [each for each in (endpoint.body, endpoint.query, endpoint.answer) if each not in (None, *types)]
    described, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    queries = {endpoint.query.__name__ for endpoint in endpoints if endpoint.query}
    for name, component in components.items():
        if name not in queries:
            say_what_is_always_there(getattr(schemas, name, None), component)

    def schema(of: Any) -> dict[str, Any]:
        return described[types.index(of)]

    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation(endpoint, schema, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "worthwhile", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def say_what_is_always_there(message: Any, component: dict[str, Any]) -> None:
    """In an answer everything is, unless its type leaves defaults out; in a request, what has a default may be missing.

    Generators of clients take a field with a default for one that has to be there, so none is left in the description.
    """
    is_struct = isinstance(message, type) and issubclass(message, msgspec.Struct)
    may_be_missing = is_struct and (issubclass(message, schemas.Message) or message.__struct_config__.omit_defaults)
    fields: dict[str, dict[str, Any]] = component.get("properties", {})
    for name, field in fields.items():
        default = field.pop("default", None)
        if may_be_missing and default is not None:
            field["description"] = f"{field.get('description', '')}; {json.dumps(default)} if left out".lstrip("; ")
        if name == "state":
            field["enum"] = STATES
    if fields and not may_be_missing:
        component["required"] = list(fields)


def operation(endpoint: Endpoint, schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    """One method of one path."""
    answer, scope = endpoint.answer, endpoint.scope
    content = {each: {"schema": schema(answer)} if answer is not None else {} for each in endpoint.content_types}
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "description": f"Needs a token with the scope {scope}." if scope != "none" else "Open to all.",
        "operationId": endpoint.run.__name__,
        "parameters": [in_path(name) for name in re.findall(r"{(\w+)}", endpoint.path)],
        "responses": {"200": {"description": "done", "content": content}}
        | {status: refusal(why) for status, why in REFUSALS.items()},
    }
    if scope == "none":
        described["security"] = []
    if endpoint.body is not None:
        body = {"application/json": {"schema": schema(endpoint.body)}}
        described["requestBody"] = {"required": True, "content": body}
    if endpoint.takes_key:
        described["parameters"].append(
            {
                "name": "Idempotency-Key", "in": "header", "required": False,
                "description": "the key of a decision that has none of its own: the same key gives the same task",
                "schema": {"type": "string", "pattern": f"^{HEADER_KEY}$"},
            }
        )  # fmt: skip
    if endpoint.query is not None:
        fields = components[endpoint.query.__name__]["properties"]
        described["parameters"] += [
            {"name": name, "in": "query", "required": False, "schema": field} for name, field in fields.items()
        ]
    return described


def in_path(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
    if name == "task":
        schema = {"type": "string", "pattern": "^[0-9]{1,15}$"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def refusal(why: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": why, "content": content}
