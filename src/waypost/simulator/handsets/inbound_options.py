"""What may go along with a message from a phone: a context, an advertisement, a medium."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.field_types import FileName, Id, Name


class Manner(Struct, frozen=True, kw_only=True):
    """What may go along with any message from a phone.

    Args:
        context_id: the message it replies to.
        forwarded: whether it was forwarded.
        frequently_forwarded: whether it was forwarded many times.
        referred_product: `catalog_id` and `product_retailer_id` of the product it asks about.
        referral: the advertisement that the person came from.

    Source: facts 7.4.
    """

    context_id: Name | None = None
    forwarded: bool = False
    frequently_forwarded: bool = False
    referred_product: dict[str, Any] | None = None
    referral: dict[str, Any] | None = None

    def shown(self) -> dict[str, Any]:
        """What the phone itself shows of it."""
        marks = {"forwarded": self.forwarded, "frequently_forwarded": self.frequently_forwarded}
        return {name: True for name, is_so in marks.items() if is_so}

    def members(self, number: Number) -> dict[str, Any]:
        """The message's members that say so."""
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


class Medium(Struct, frozen=True, forbid_unknown_fields=True, rename={"media_id": "id"}):
    """What a phone sends along: a content of its own, or media that are there already.

    Args:
        media_id: of media that the business number has; then nothing else is needed.
        content: the bytes.
        voice: of audio: whether it was spoken into the phone.
        animated: of a sticker: whether it moves.
    """

    media_id: Id | None = None
    content: bytes = b""
    mime_type: Annotated[str, Meta(max_length=100)] = ""
    file_name: FileName = ""
    caption: Annotated[str, Meta(max_length=1024)] | None = None
    voice: bool = False
    animated: bool = False
