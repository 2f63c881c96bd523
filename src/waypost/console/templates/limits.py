"""How many characters the editor's fields take: what its counters count to."""

from typing import Final

# fmt: off
MOST_CHARS: Final = {  # Source: domain/template_rules.py; a test holds each number to it
    # field                 at most   the rule of template_rules.py that it is of
    "elementName":         (180,     "name-length"),
    "vertical":            (180,     "vertical-length"),
    "content":             (1024,    "content-length"),
    "header":              (60,      "header-length"),
    "footer":              (60,      "footer-length"),
    "limitedOfferText":    (16,      "offer-text-length"),
    "content of an offer": (600,     "lto-content"),
    "button.text":         (25,      "label-length"),
    "button.autofill_text": (25,     "label-length"),
    "button.url":          (2000,    "url-usable"),
    "button.phone_number": (20,      "phone-usable"),
    "button.code":         (15,      "copy-code-length"),
    "card.body":           (160,     "card-body-length"),
}
MOST: Final = {name: most for name, (most, _) in MOST_CHARS.items()}
# fmt: on
