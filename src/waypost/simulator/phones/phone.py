"""One simulated phone: its owner and its behaviour."""

from typing import Any, Final

import msgspec

READ_ON_REQUEST: Final = -1


class SimulatedPhone(msgspec.Struct, frozen=True, omit_defaults=True):
    """One simulated phone.

    Args:
        name: the owner's profile name.
        deliver_after_ms: from `sent` to `delivered`; None: as in the settings.
        read_after_ms: from `delivered` to `read`; None: as in the settings; `READ_ON_REQUEST`: not automatically.
        wa_id: the WhatsApp id, if it differs from the number, as in Brazil and Mexico; businesses see it in place of the
            number, and reach the phone by both. Source: facts 4.3.
        user_id: the business-scoped user id; empty: businesses see none.
        username: shown next to the profile name; may be empty.
        shows_number: whether every business sees the number; if not, there is a user id.
        parent_user_id: the id in a group of linked portfolios; empty: businesses see none.
        number_known: the businesses that know the number although it is hidden: the id of each number of theirs, and
            the time of the last contact by the phone's number.
        condition: why messages fail on it, one of `conditions.PHONE_CONDITIONS`; empty: they do not fail.
        sends_read_receipts: whether businesses get `read` statuses.
        has_chat_open: whether messages are read when they arrive; `delivered` is skipped then.
        is_offline: whether nothing arrives until it is online again.
        has_blocked: the ids of the business numbers that its owner has blocked.
        stopped_marketing_of: the ids of the business numbers whose marketing its owner has stopped.
        seed: for the random choices of its script.
        script: the steps of its own script, as JSON; empty if it has none.
    """

    phone: str
    name: str
    deliver_after_ms: int | None = None
    read_after_ms: int | None = None
    wa_id: str = ""
    user_id: str = ""
    username: str = ""
    shows_number: bool = True
    parent_user_id: str = ""
    number_known: tuple[tuple[str, int], ...] = ()
    condition: str = ""
    sends_read_receipts: bool = True
    has_chat_open: bool = False
    is_offline: bool = False
    has_blocked: tuple[str, ...] = ()
    stopped_marketing_of: tuple[str, ...] = ()
    seed: str = ""
    script: str = ""

    @property
    def whatsapp_id(self) -> str:
        """The digits by which businesses see the phone."""
        return self.wa_id or self.phone

    def contact(self) -> dict[str, Any]:
        """Return the phone's owner as webhooks name a sender. Source: facts 7.2, 7.5."""
        profile = {"name": self.name} | ({"username": self.username} if self.username else {})
        return {"profile": profile, **self.identity_members("wa_id", "user_id")}

    def identity_members(self, number_name: str, user_id_name: str) -> dict[str, str]:
        """Return the number and the user id that businesses see, under the given names."""
        members = {number_name: self.whatsapp_id} if self.shows_number else {}
        members |= {user_id_name: self.user_id} if self.user_id else {}
        parent_name = user_id_name.replace("user_id", "parent_user_id")
        return members | ({parent_name: self.parent_user_id} if self.parent_user_id else {})

    def note_contact(self, phone_number_id: str, at_ms: int) -> "SimulatedPhone":
        """Return the phone after contact with a business number by the phone's own number."""
        known = dict(self.number_known) | {phone_number_id: at_ms}
        return msgspec.structs.replace(self, number_known=tuple(sorted(known.items())))
