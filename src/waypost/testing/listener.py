"""What a partner hears: its subscription, and waiting for one of its callbacks."""

from collections.abc import Callable

from waypost.testing.callback import Callback
from waypost.testing.failures import no_callback
from waypost.testing.partner_setup import Subscription, Tenancy, subscribe
from waypost.testing.waiting import Deadline


class Hearing:
    """The callbacks of one partner, each of which is given once."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        self._box = tenancy.box
        self._given: set[str] = set()
        self._wish = Subscription()
        self._subscription_id = subscribe(tenancy, self._wish)

    def wait_for(
        self, *, kind: str, message_id: str, where: Callable[[Callback], bool] | None, within_s: float | None
    ) -> Callback:
        """The first that fits and was not given before; the arguments are `Partner.wait_for_callback`'s.

        Raises:
            NotSeen: none came in time.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s

        def fits(one: Callback) -> bool:
            if one.id in self._given or (kind and one.kind != kind):
                return False
            if message_id and one.message_id != message_id:
                return False
            return where is None or where(one)

        callback = self._wait(fits, wait_s)
        if callback is None:
            wanted = f"`{kind}` " if kind else ""
            wanted += f"about {message_id} " if message_id else ""
            wanted += "that fits `where` " if where else ""
            raise no_callback(self._tenancy, wanted=wanted, within_s=wait_s, message_id=message_id)
        self._given.add(callback.id)
        return callback

    def pass_on(self, url: str, wish: Subscription) -> None:
        """Let callbacks go on to an address, as the wish says; subscriptions of others stay."""
        self._box.goes_to = url
        if wish == self._wish:
            return
        self._tenancy.app_door.json("DELETE", f"/subscription/{self._subscription_id}")
        self._subscription_id = subscribe(self._tenancy, wish)
        self._wish = wish

    def close(self) -> None:
        """Hear nothing more: also what the application has subscribed to ends with its test."""
        self._tenancy.app_door.json("DELETE", "/subscription")
        self._tenancy.service.receiver.close_box(self._tenancy.names.waba_id)

    def _wait(self, fits: Callable[[Callback], bool], wait_s: float) -> Callback | None:
        deadline = Deadline(wait_s)
        with self._box.came:
            while True:
                found = next((one for one in self._box.taken if fits(one)), None)
                if found is not None or deadline.is_over:
                    return found
                self._box.came.wait(deadline.left_s)
