"""Clicks on the links of marketing messages: the webhook of each, and their times by template."""

from typing import Any, Final

from waypost.base.clock import DAY_MS, Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.messages.analytics import TemplateAnalytics
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import SimulatedMessage
from waypost.simulator.tables.updates import add_update
from waypost.simulator.webhooks.outbox import Outbox

MARKETING_MARK: Final = "marketing_messages"
"""The member that marks a message sent through this API in what its phone shows."""
_CLICKS_FOR_MS: Final = 7 * DAY_MS  # Source: the operator's page "Tracking click events"


class MarketingClicks:
    """Stores clicks and notifies the business of them."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, outbox: Outbox, analytics: TemplateAnalytics) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._outbox = outbox
        self._analytics = analytics
        self._clicked_ms = CachedKeyedValues(store, "marketing_click", int)  # of a template, by the click's id

    async def click(self, number: Number, message: SimulatedMessage) -> str | None:
        """Click a link of a marketing message; return the click's id, or None for a message of more than 7 days ago.

        Source: the operator's page "Tracking click events".
        """
        now_ms = self._clock.now_ms()
        if message.at_ms < now_ms - _CLICKS_FOR_MS:
            return None
        click_id = f"IwAR{self._ids.digits(20)}"
        template_id = self._analytics.find_template_id(message.phone_number_id, message.body) or ""
        statements = [self._clicked_ms.save_statement(now_ms, click_id, template_id)]
        if self._outbox.has_subscribers(number.waba_id):
            value = _click_value(number, click_id, f"AI@{self._ids.digits(20)}", now_ms)
            statements.append(add_update(self._outbox.account_update(number.waba_id, now_ms, "messages", value)))
        await self._store.run(statements)
        self._clicked_ms.put(now_ms, click_id, template_id)
        self._outbox.wake_events(number.waba_id).set()
        return click_id

    def count(self, template_id: str, *, from_ms: int, until_ms: int) -> int:
        """Return the number of clicks on links of a template's messages in a period."""
        return sum(from_ms <= at_ms < until_ms for at_ms in self._clicked_ms.values_of(template_id).values())


def _click_value(number: Number, click_id: str, tracking_token: str, now_ms: int) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": number.phone_number, "phone_number_id": number.phone_number_id},
        "user_actions": [
            {
                "action_type": "marketing_messages_link_click",
                "timestamp": str(now_ms // 1000),
                "marketing_messages_link_click_data": {
                    "click_component": "CTA",
                    "click_id": click_id,
                    "tracking_token": tracking_token,
                },
            }
        ],
    }
