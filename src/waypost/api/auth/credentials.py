"""The kinds of credential that routes require."""

from enum import StrEnum


class Credential(StrEnum):
    """The kind of credential that a route requires. Source: facts 1.1."""

    NONE = "none"
    PARTNER_TOKEN = "partner token"  # noqa: S105  a kind of credential, not one
    UNIVERSAL_TOKEN = "universal token"  # noqa: S105  likewise
    APP_TOKEN = "app token"  # noqa: S105  likewise
    API_KEY = "API key"
