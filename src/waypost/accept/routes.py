"""The table of routes: method, path, credential, rate, form and answers of every partner and messaging endpoint."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from waypost.accept.login import app_token, log_in
from waypost.accept.messages import send_session_message, send_template_message
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.accept.subscriptions import (
    create_subscription,
    delete_all_subscriptions,
    delete_subscription,
    list_subscriptions,
)
from waypost.accept.templates import create_template, list_templates

Endpoint = Callable[[Services, Request], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One row.

    Attributes:
        credential: which one it takes; `none` for login.
        rate: its row in the table of rates; None where the endpoint has two.
        form: the fields it reads.
        answers: the statuses it may give.
        calls: whether it may call somebody else before it answers (design, section 3).
    """

    method: str
    path: str
    endpoint: Endpoint
    credential: str
    rate: str
    form: tuple[str, ...]
    answers: tuple[int, ...]
    source: str
    calls: bool = False


_TEMPLATE_FIELDS = (
    "elementName", "languageCode", "category", "templateType", "vertical", "content", "example", "header",
    "exampleHeader", "footer", "buttons", "enableSample", "allowTemplateCategoryChange",
)  # fmt: skip
_SESSION_FIELDS = ("channel", "source", "destination", "src.name", "message")
_SEND_FIELDS = (
    "channel", "source", "destination", "src.name", "template", "message", "postbackTexts", "sandbox",
)  # fmt: skip
_SUBSCRIPTION_FIELDS = ("modes", "tag", "url", "version", "showOnUI", "meta", "doCheck")
_APP = "/partner/app/{app_id}"

# fmt: off
ROUTES: Final = (  # Source: spec, "Endpoints"; facts 1.4, 3.5, 4.1
    #         method    path                                      endpoint                  credential       rate                    form                   answers                      source
    RouteRow("POST",   "/partner/account/login",                  log_in,                   "none",          "login",                ("email", "password", "secret"), (200, 400, 401, 429), "spec, Partner login"),
    RouteRow("GET",    f"{_APP}/token",                           app_token,                "partner token", "app_token",            (),                    (200, 401, 429),             "facts 1.4"),
    RouteRow("POST",   f"{_APP}/templates",                       create_template,          "app token",     "create_template",      _TEMPLATE_FIELDS,      (200, 400, 401, 429),        "spec, Create template"),
    RouteRow("GET",    f"{_APP}/templates",                       list_templates,           "app token",     "list_templates",       (),                    (200, 401, 429),             "facts 3.5"),
    RouteRow("POST",   f"{_APP}/subscription",                    create_subscription,      "app token",     "create_subscription",  _SUBSCRIPTION_FIELDS,  (200, 400, 401, 429),        "facts 4.1", calls=True),
    RouteRow("GET",    f"{_APP}/subscription",                    list_subscriptions,       "app token",     "list_subscriptions",   (),                    (200, 401, 429),             "facts 4.1"),
    RouteRow("DELETE", f"{_APP}/subscription/{{subscription_id}}", delete_subscription,     "app token",     "delete_subscription",  (),                    (204, 400, 401, 429),        "facts 4.1"),
    RouteRow("DELETE", f"{_APP}/subscription",                    delete_all_subscriptions, "app token",     "delete_subscriptions", (),                    (204, 401, 429),             "facts 4.1"),
    RouteRow("POST",   "/wa/api/v1/msg",                          send_session_message,     "API key",       "session_text",         _SESSION_FIELDS,       (200, 400, 401, 429),        "spec, Send session text message"),
    RouteRow("POST",   "/wa/api/v1/template/msg",                 send_template_message,    "API key",       "send_template",        _SEND_FIELDS,          (200, 400, 401, 429),        "spec, Send template message with postback texts"),
)
# fmt: on
