"""One handset: who its owner is, and how it behaves."""

from typing import Any, Final

import msgspec

ONLY_WHEN_TOLD: Final = -1


class Phone(msgspec.Struct, frozen=True, omit_defaults=True):
    """One handset.

    Args:
        name: the profile name; what its owner calls himself.
        deliver_after_ms: from `sent` to `delivered`; None: as the settings say.
        read_after_ms: from `delivered` to `read`; None: as the settings say; `ONLY_WHEN_TOLD`.
        user_id: the business-scoped user id; empty: businesses see none.
        username: shown beside the profile name; may be empty.
        shows_number: whether businesses see the number; without it there is a user id.
        condition: why messages fail on it, a key of `conditions.CONDITIONS`; empty: they do not.
        sends_read_receipts: whether businesses hear that their messages are read.
        has_chat_open: messages are read in the moment they arrive; `delivered` is skipped then.
        is_offline: nothing arrives until it is back.
        has_blocked: the ids of the business numbers that its owner has blocked.
        stopped_marketing_of: the ids of the business numbers whose marketing its owner has stopped.
        seed: where the chance of its script comes from.
        script: the steps of a script of its own, as JSON; empty where it has none.
    """

    phone: str
    name: str
    deliver_after_ms: int | None = None
    read_after_ms: int | None = None
    user_id: str = ""
    username: str = ""
    shows_number: bool = True
    condition: str = ""
    sends_read_receipts: bool = True
    has_chat_open: bool = False
    is_offline: bool = False
    has_blocked: tuple[str, ...] = ()
    stopped_marketing_of: tuple[str, ...] = ()
    seed: str = ""
    script: str = ""

    def contact(self) -> dict[str, Any]:
        """The phone's owner, as webhooks name a sender. Source: facts 7.2, 7.5."""
        profile = {"name": self.name} | ({"username": self.username} if self.username else {})
        return {"profile": profile, **self.named("wa_id", "user_id")}

    def named(self, number: str, user_id: str) -> dict[str, str]:
        """Who this is: the number and the user id, under the given names, as far as seen."""
        who = {number: self.phone} if self.shows_number else {}
        return who | ({user_id: self.user_id} if self.user_id else {})
