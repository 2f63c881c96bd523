"""The callbacks pages' rows of the route table."""

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
    PageRow(Kind.PAGE, _BASE,                      subscriptions.show_subscriptions,         "who is told, and how they are doing"),
    PageRow(Kind.LIVE, _BASE + "/live",            subscriptions.live_subscriptions,         "and what changes of it"),
    PageRow(Kind.PAGE, _BASE + "/new",             subscriptions.show_new,                   "the form of a new subscription"),
    PageRow(Kind.ACT,  _BASE + "/new",             subscription_actions.create,                 "make it"),
    PageRow(Kind.PAGE, _ONE,                       subscriptions.show_subscription,          "one subscription"),
    PageRow(Kind.LIVE, _ONE + "/live",             subscriptions.live_subscription,          "and what changes of it"),
    PageRow(Kind.ACT,  _ONE,                       subscription_actions.change,                 "change it"),
    PageRow(Kind.ACT,  _ONE + "/check",            subscription_actions.check,                  "send its address a ping"),
    PageRow(Kind.ACT,  _ONE + "/pause",            subscription_actions.pause,                  "tell it nothing for a while"),
    PageRow(Kind.ACT,  _ONE + "/resume",           subscription_actions.resume,                 "let it go on"),
    PageRow(Kind.ACT,  _ONE + "/key",              subscription_actions.show_key,               "show the key that signs"),
    PageRow(Kind.ACT,  _ONE + "/rotate",           subscription_actions.rotate_key,             "give it a new key"),
    PageRow(Kind.ACT,  _ONE + "/delete",           subscription_actions.delete,                 "end it"),
    PageRow(Kind.PAGE, _BASE + "/deliveries",      deliveries.show_deliveries,               "what was told"),
    PageRow(Kind.LIVE, _BASE + "/deliveries/live", deliveries.live_deliveries,               "and what is told now"),
    PageRow(Kind.PAGE, _TOLD,                      delivery.show_delivery,               "one callback and every try"),
    PageRow(Kind.LIVE, _TOLD + "/live",            delivery.live_delivery,               "and what changes of it"),
    PageRow(Kind.ACT,  _TOLD + "/body",            delivery.give_body,                   "its exact bytes"),
    PageRow(Kind.ACT,  _TOLD + "/reveal",          delivery.reveal_body,                 "its body with what people write"),
    PageRow(Kind.ACT,  _TOLD + "/replay",          delivery.replay,                      "send it again"),
    PageRow(Kind.PAGE, _BASE + "/replay",          replays.show_replay,                      "choose what is sent again, and count it"),
    PageRow(Kind.ACT,  _BASE + "/replay",          replays.replay,                           "send it again"),
    PageRow(Kind.PAGE, _BASE + "/answers",         response_times.show_answer_times,           "how long receivers take to answer"),
    PageRow(Kind.PAGE, _BASE + "/verify",          snippets.show_snippets,                   "how a receiver verifies a signature"),
)
# fmt: on

CALLBACKS: Final = tuple(replace(row, is_audited=row.kind is Kind.ACT) for row in _ROWS)
