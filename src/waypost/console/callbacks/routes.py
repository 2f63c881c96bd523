"""Routes of the callbacks pages."""

from dataclasses import replace
from typing import Final

from waypost.console.callbacks import (
    deliveries,
    delivery,
    replays,
    response_times,
    snippets,
    subscription_actions,
    subscriptions,
)
from waypost.console.route import Kind, PageRow

_BASE: Final = "/apps/{app_id}/callbacks"
_ONE: Final = _BASE + "/subscriptions/{subscription_id}"
_TOLD: Final = _BASE + "/deliveries/{callback_id}"

# fmt: off
_ROWS: Final = (  # Source: decision 0057
    #       kind       path                        endpoint                                  what it does
    PageRow(Kind.PAGE, _BASE,                      subscriptions.show_subscriptions,         "subscriptions and their health"),
    PageRow(Kind.LIVE, _BASE + "/live",            subscriptions.live_subscriptions,         "updates of it"),
    PageRow(Kind.PAGE, _BASE + "/new",             subscriptions.show_new,                   "form of a new subscription"),
    PageRow(Kind.ACT,  _BASE + "/new",             subscription_actions.create,                 "create it"),
    PageRow(Kind.PAGE, _ONE,                       subscriptions.show_subscription,          "one subscription"),
    PageRow(Kind.LIVE, _ONE + "/live",             subscriptions.live_subscription,          "updates of it"),
    PageRow(Kind.ACT,  _ONE,                       subscription_actions.change,                 "change it"),
    PageRow(Kind.ACT,  _ONE + "/check",            subscription_actions.check,                  "send a ping to its endpoint"),
    PageRow(Kind.ACT,  _ONE + "/pause",            subscription_actions.pause,                  "pause it"),
    PageRow(Kind.ACT,  _ONE + "/resume",           subscription_actions.resume,                 "resume it"),
    PageRow(Kind.ACT,  _ONE + "/key",              subscription_actions.show_key,               "show its signing key"),
    PageRow(Kind.ACT,  _ONE + "/rotate",           subscription_actions.rotate_key,             "create a new signing key"),
    PageRow(Kind.ACT,  _ONE + "/delete",           subscription_actions.delete,                 "delete it"),
    PageRow(Kind.PAGE, _BASE + "/deliveries",      deliveries.show_deliveries,               "list of callbacks"),
    PageRow(Kind.LIVE, _BASE + "/deliveries/live", deliveries.live_deliveries,               "updates of it"),
    PageRow(Kind.PAGE, _TOLD,                      delivery.show_delivery,               "one callback and its attempts"),
    PageRow(Kind.LIVE, _TOLD + "/live",            delivery.live_delivery,               "updates of it"),
    PageRow(Kind.ACT,  _TOLD + "/body",            delivery.give_body,                   "download its exact bytes"),
    PageRow(Kind.ACT,  _TOLD + "/reveal",          delivery.reveal_body,                 "its body with message texts"),
    PageRow(Kind.ACT,  _TOLD + "/replay",          delivery.replay,                      "replay it"),
    PageRow(Kind.PAGE, _BASE + "/replay",          replays.show_replay,                      "select callbacks to replay, and count them"),
    PageRow(Kind.ACT,  _BASE + "/replay",          replays.replay,                           "replay them"),
    PageRow(Kind.PAGE, _BASE + "/response-times",  response_times.show_answer_times,           "response times of receivers"),
    PageRow(Kind.PAGE, _BASE + "/verify",          snippets.show_snippets,                   "code that verifies a signature"),
)
# fmt: on

CALLBACKS: Final = tuple(replace(row, is_audited=row.kind is Kind.ACT) for row in _ROWS)
