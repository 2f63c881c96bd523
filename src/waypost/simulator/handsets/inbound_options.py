"""Optional members of a message from a phone: a context, an advertisement, media."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.field_types import FileName, Id, Name


class InboundOptions(Struct, frozen=True, kw_only=True):
    """Options that any message from a phone may have.

    Args:
        context_id: the message it replies to.
        forwarded: whether it was forwarded.
        frequently_forwarded: whether it was forwarded many times.
        referred_product: `catalog_id` and `product_retailer_id` of the product that it is about.
        referral: the advertisement that the person came from.

    Source: facts 7.4.
    """

    context_id: Name | None = None
    forwarded: bool = False
    frequently_forwarded: bool = False
    referred_product: dict[str, Any] | None = None
    referral: dict[str, Any] | None = None

    def rendered_marks(self) -> dict[str, Any]:
        """Return the marks that the phone itself shows."""
        marks = {"forwarded": self.forwarded, "frequently_forwarded": self.frequently_forwarded}
        return {name: True for name, is_set in marks.items() if is_set}

    def webhook_members(self, number: Number) -> dict[str, Any]:
        """Return the members that the webhook's message has for these options."""
        context: dict[str, Any] = {}
        if self.context_id is not None:
            context |= {"from": number.phone_number, "id": self.context_id}
        if self.forwarded:
            context["forwarded"] = True
        if self.frequently_forwarded:
            context["frequently_forwarded"] = True
        if self.referred_product is not None:
            context |= {"from": number.phone_number, "referred_product": self.referred_product}
        members: dict[str, Any] = {"context": context} if context else {}
        return members | ({"referral": self.referral} if self.referral is not None else {})


class PhoneMedia(Struct, frozen=True, forbid_unknown_fields=True, rename={"media_id": "id"}):
    """Media that a phone sends: new content, or the id of existing media.

    Args:
        media_id: of media that the business number has; then nothing else is needed.
        content: the bytes.
        voice: of audio: whether it is a voice recording.
        animated: of a sticker: whether it is animated.
    """

    media_id: Id | None = None
    content: bytes = b""
    mime_type: Annotated[str, Meta(max_length=100)] = ""
    file_name: FileName = ""
    caption: Annotated[str, Meta(max_length=1024)] | None = None
    voice: bool = False
    animated: bool = False
