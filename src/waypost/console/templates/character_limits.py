"""How many characters the editor's fields take: what its counters count to."""

from typing import Final

from waypost.domain.templates.field_rules import AtMost
from waypost.domain.templates.rules import SPEC_RULES

# fmt: off
MOST_CHARS: Final = {  # of what is no field of its own. Source: domain/templates/rules.py; a test holds each number to it
    # counter               at most   the rule of template_rules.py that it is of
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
    name: most for name, (most, _) in MOST_CHARS.items()
}
