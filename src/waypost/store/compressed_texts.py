"""Texts as stored that mostly repeat each other: raw deflate, with a dictionary of what they have in common.

A compressor that has read the dictionary is copied for each text, which takes less than half the time of a new one
(decision 0093).

Source: RFC 1950, section 2.3, "FDICT"; RFC 1951.
"""

import zlib
from typing import Final

_LEVEL: Final = 6
_WINDOW_BITS: Final = -11
"""2 KiB, more than a dictionary and a usual text; negative: without a header and a checksum."""
_MEMORY_LEVEL: Final = 3


class TextCompressor:
    r"""Compresses the texts of one kind. Stored texts depend on it: it is never changed, but replaced by another.

    Args:
        mark: first byte of compressed texts; one that a text of this kind hardly ever begins with.
        dictionary: what most texts contain, the most frequent at its end.
    """

    def __init__(self, mark: bytes, dictionary: bytes) -> None:
        self.mark: Final = mark
        self.dictionary: Final = dictionary
        self._unused = zlib.compressobj(
            _LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, dictionary
        )

    def compress(self, text: bytes) -> bytes:
        """Return a text as stored; one that would not become shorter is stored as it is."""
        compressor = self._unused.copy()
        stored = b"".join((self.mark, compressor.compress(text), compressor.flush()))
        return stored if len(stored) < len(text) or text.startswith(self.mark) else text

    def decompress(self, stored: bytes) -> bytes:
        """Return a text from what `compress` returned for it; one from before revision 8 as it is."""
        if not stored.startswith(self.mark):
            return stored
        return zlib.decompressobj(_WINDOW_BITS, self.dictionary).decompress(stored[1:])


CALLBACK_BODIES: Final = TextCompressor(
    b"\x01",
    b'"origin":{"type":"marketing"authentication"service"},"conversation":{"id":""expiration_timestamp":"'
    b'"errors":[{"code":,"title":""message":"Message undeliverable"messages":[{"from":""type":"text","text":{"body":"'
    b'{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{'
    b'"messaging_product":"whatsapp","metadata":{"display_phone_number":"1","phone_number_id":"1"},'
    b'"contacts":[{"profile":{"name":""},"wa_id":"1"}],'
    b'"statuses":[{"id":"wamid.HBgL","status":"enqueued"sent"delivered"read"failed","timestamp":"17","recipient_id":"1",'
    b'"gs_id":"\0","conversation":{"id":"","origin":{"type":"utility"}},'
    b'"pricing":{"billable":true,"pricing_model":"PMP","category":"utility","type":"regular"}}]}}]}],"gs_app_id":"01"}'
    b'"payload":{"code":,"reason":""whatsappMessageId":"wamid.HBgL","type":"session"}}}","type":"template"}}}'
    b'"type":"failed","destination":"1","type":"read","destination":"1","type":"enqueued","destination":"1'
    b'},"conversation":{"id":"","expiresAt":17,"type":"utility"},"pricing":{"policy":"PMP","category":"utility",'
    b'"type":"regular"}}}'
    b'"type":"sent","destination":"1{"app":"","phone":"1","timestamp":17,"version":2,"type":"message-event","payload":'
    b'{"id":"wamid.HBgL","gsId":"\0","type":"delivered","destination":"1","payload":{"ts":17}}}',
)
"""Of both versions; the bodies of version 2 at the end."""

REQUESTS: Final = TextCompressor(
    b"\x01",
    b"https%3A%2F%2F&postbackTexts=%5B%7B%22index%22%3A0%2C%22text%22%3A%22%22%7D%2C%7B%22index%22%3A1%2C%22text%22%3A%22"
    b"%22%7D%5D&disablePreview=false&message=%7B%22type%22%3A%22image%22%2C%22originalUrl%22%3A%22%22%2C%22caption%22%3A%22"
    b"&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22%22%7D"
    b"&src.name=&template=%7B%22id%22%3A%220%22%2C%22params%22%3A%5B%22%22%2C%22%22%5D%7D"
    b"channel=whatsapp&source=1&destination=1&src.name=&template=%7B%22id%22%3A%220",
)
"""Forms as partners send them."""
