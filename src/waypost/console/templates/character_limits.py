"""Maximum lengths of the editor's fields, for its character counters."""

from typing import Final

from waypost.domain.templates.field_rules import AtMost
from waypost.domain.templates.rules import SPEC_RULES

# fmt: off
MOST_CHARS: Final = {  # limits that depend on more than the field. Source: domain/templates/rules.py; a test compares each number
    # counter               maximum   its rule in domain/templates/rules.py
    "content of an offer": (600,     "lto-content"),
    "button.text":         (25,      "label-length"),
    "button.autofill_text": (25,     "label-length"),
    "button.url":          (2000,    "url-usable"),
    "button.phone_number": (20,      "phone-usable"),
    "button.code":         (15,      "copy-code-length"),
    "card.body":           (160,     "card-body-length"),
}
# fmt: on
MOST: Final = {rule.field: rule.must.max_chars for rule in SPEC_RULES if isinstance(rule.must, AtMost)} | {
    name: max_chars for name, (max_chars, _) in MOST_CHARS.items()
}
