"""The id of an operation in the OpenAPI document, which is also the name of its page in the API reference."""

import re


def make_operation_id(route: str) -> str:
    """Return the id of the route with this method and path, such as `post-partner-account-login`."""
    method, _, path = route.partition(" ")
    name = re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")
    return f"{method.lower()}-{name}"
