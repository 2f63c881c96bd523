"""The subscription of a partner under test, and waits for its callbacks."""

from collections.abc import Callable

from waypost.testing.callback import Callback
from waypost.testing.failures import missing_callback
from waypost.testing.partner_setup import ReceiverSubscription, Tenancy, subscribe
from waypost.testing.polling import Deadline


class CallbackListener:
    """The callbacks of one partner; each is returned once."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        self._inbox = tenancy.inbox
        self._returned_ids: set[str] = set()
        self._subscription = ReceiverSubscription()
        self._subscription_id = subscribe(tenancy, self._subscription)

    def wait_for_callback(
        self, *, kind: str, message_id: str, where: Callable[[Callback], bool] | None, within_s: float | None
    ) -> Callback:
        """Return the first match that was not returned before; for the arguments see `Partner.wait_for_callback`.

        Raises:
            NotSeen: none arrived in time.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s

        def matches(callback: Callback) -> bool:
            if callback.id in self._returned_ids or (kind and callback.kind != kind):
                return False
            if message_id and callback.message_id != message_id:
                return False
            return where is None or where(callback)

        callback = self._wait(matches, wait_s)
        if callback is None:
            expected = f"`{kind}` " if kind else ""
            expected += f"about {message_id} " if message_id else ""
            expected += "that matches `where` " if where else ""
            raise missing_callback(self._tenancy, expected=expected, within_s=wait_s, message_id=message_id)
        self._returned_ids.add(callback.id)
        return callback

    def forward(self, url: str, subscription: ReceiverSubscription) -> None:
        """Forward callbacks to a URL, and replace our own subscription; others are not changed."""
        self._inbox.forward_url = url
        if subscription == self._subscription:
            return
        self._tenancy.partner_api.json("DELETE", f"/subscription/{self._subscription_id}")
        self._subscription_id = subscribe(self._tenancy, subscription)
        self._subscription = subscription

    def close(self) -> None:
        """Delete all subscriptions of the app, those of the application under test too, and close the inbox."""
        self._tenancy.partner_api.json("DELETE", "/subscription")
        self._tenancy.service.receiver.close_inbox(self._tenancy.names.waba_id)

    def _wait(self, matches: Callable[[Callback], bool], wait_s: float) -> Callback | None:
        deadline = Deadline(wait_s)
        with self._inbox.changed:
            while True:
                match = next((callback for callback in self._inbox.delivered if matches(callback)), None)
                if match is not None or deadline.is_over:
                    return match
                self._inbox.changed.wait(deadline.left_s)
