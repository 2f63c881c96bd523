"""Routes of the callbacks pages."""

from dataclasses import replace
from typing import Final

from waypost.console.callbacks import deliveries, delivery, replays, response_times, snippets, subscriptions
from waypost.console.callbacks import subscriptions as subscription_actions
from waypost.console.route import PageRoute, RouteKind

_BASE: Final = "/apps/{app_id}/callbacks"
_ONE_SUBSCRIPTION: Final = _BASE + "/subscriptions/{subscription_id}"
_DELIVERY: Final = _BASE + "/deliveries/{callback_id}"

_ROWS: Final = (  # Source: decision 0057
    # kind, path, endpoint, what it does
    PageRoute(RouteKind.PAGE, _BASE, subscriptions.show_subscriptions, "subscriptions and their health"),
    PageRoute(RouteKind.LIVE, _BASE + "/live", subscriptions.live_subscriptions, "updates of it"),
    PageRoute(RouteKind.PAGE, _BASE + "/new", subscriptions.show_new, "form of a new subscription"),
    PageRoute(RouteKind.ACT, _BASE + "/new", subscription_actions.create, "create it"),
    PageRoute(RouteKind.PAGE, _ONE_SUBSCRIPTION, subscriptions.show_subscription, "one subscription"),
    PageRoute(RouteKind.LIVE, _ONE_SUBSCRIPTION + "/live", subscriptions.live_subscription, "updates of it"),
    PageRoute(RouteKind.ACT, _ONE_SUBSCRIPTION, subscription_actions.change, "change it"),
    PageRoute(
        RouteKind.ACT,
        path=_ONE_SUBSCRIPTION + "/check",
        endpoint=subscription_actions.send_ping,
        does="send a ping to its endpoint",
    ),
    PageRoute(RouteKind.ACT, _ONE_SUBSCRIPTION + "/pause", subscription_actions.pause, "pause it"),
    PageRoute(RouteKind.ACT, _ONE_SUBSCRIPTION + "/resume", subscription_actions.resume, "resume it"),
    PageRoute(RouteKind.ACT, _ONE_SUBSCRIPTION + "/retry", subscription_actions.retry, "call its receiver now"),
    PageRoute(RouteKind.ACT, _ONE_SUBSCRIPTION + "/key", subscription_actions.show_key, "show its signing key"),
    PageRoute(
        RouteKind.ACT,
        path=_ONE_SUBSCRIPTION + "/rotate",
        endpoint=subscription_actions.rotate_key,
        does="create a new signing key",
    ),
    PageRoute(RouteKind.ACT, _ONE_SUBSCRIPTION + "/delete", subscription_actions.delete, "delete it"),
    PageRoute(RouteKind.ACT, _BASE + "/replay-selected", replays.replay_selected, "replay the selected callbacks"),
    PageRoute(RouteKind.PAGE, _DELIVERY, delivery.show_delivery, "one callback and its attempts"),
    PageRoute(RouteKind.LIVE, _DELIVERY + "/live", delivery.live_delivery, "updates of it"),
    PageRoute(RouteKind.ACT, _DELIVERY + "/body", delivery.download_body, "download its exact bytes"),
    PageRoute(RouteKind.ACT, _DELIVERY + "/reveal", delivery.reveal_body, "its body with message texts"),
    PageRoute(RouteKind.ACT, _DELIVERY + "/replay", delivery.replay, "replay it"),
    PageRoute(RouteKind.PAGE, _BASE + "/replay", replays.show_replay, "select callbacks to replay, and count them"),
    PageRoute(RouteKind.ACT, _BASE + "/replay", replays.replay, "replay them"),
    PageRoute(
        RouteKind.PAGE,
        path=_BASE + "/response-times",
        endpoint=response_times.show_response_times,
        does="response times of receivers",
    ),
    PageRoute(RouteKind.PAGE, _BASE + "/verify", snippets.show_snippets, "code that verifies a signature"),
)

CALLBACKS: Final = (
    *deliveries.DELIVERIES.routes,
    *(replace(row, is_audited=row.kind is RouteKind.ACT) for row in _ROWS),
)
