"""What a draft's buttons must be: the functions that the rows of the rule table are made of."""

import itertools
import re
from collections.abc import Callable
from typing import Final

from waypost.domain.templates.buttons import BUTTON_KINDS, Button, ButtonKind, OtpType, SupportedApp
from waypost.domain.templates.field_rules import If, Must, Wrong, has_text
from waypost.domain.templates.fields import Draft

Is = Callable[[Button], bool]
MOST_URL_CHARS: Final = 2000  # Source: operator's facts 2.3


def of_kind(*kinds: ButtonKind) -> Is:
    """Buttons of these kinds."""
    return lambda button: button.kind in kinds


def of_otp_type(*types: OtpType) -> Is:
    """OTP buttons of these types."""
    return lambda button: button.kind is ButtonKind.OTP and button.otp_type in types


def each(member: str, is_right: Is, *, among: Is | None = None) -> Must:
    """Each button, or each among some, is right in that member."""

    def must(draft: Draft) -> Wrong | None:
        for at, button in enumerate(draft.buttons):
            if (among is None or among(button)) and not is_right(button):
                return Wrong(f"[{at}].{member}")
        return None

    return must


def each_app(member: str, is_right: Callable[[SupportedApp], bool]) -> Must:
    """Each application that a button names is right in that member."""

    def must(draft: Draft) -> Wrong | None:
        for at, button in enumerate(draft.buttons):
            for nth, app in enumerate(button.supported_apps):
                if not is_right(app):
                    place = "" if button.is_flat else f".supported_apps[{nth}]"
                    return Wrong(f"[{at}]{place}.{member}")
        return None

    return must


def have_their_fields(draft: Draft) -> Wrong | None:
    """Every button has the fields of its kind."""
    for at, button in enumerate(draft.buttons):
        for field in BUTTON_KINDS[button.kind].required:
            value = getattr(button, field)
            if not value or not has_text(value):
                return Wrong(f"[{at}].{field}", f"{button.kind} has it")
    return None


def have_short_labels(max_chars: int) -> Must:
    """Each label, that of autofill among them, has at most so many characters."""

    def must(draft: Draft) -> Wrong | None:
        for at, button in enumerate(draft.buttons):
            for member in ("text", "autofill_text"):
                if len(getattr(button, member)) > max_chars:
                    return Wrong(f"[{at}].{member}")
        return None

    return must


def have_a_short_code(max_chars: int) -> Is:
    """A sample code of at most so many characters."""
    return lambda button: all(len(code) <= max_chars for code in button.example)


def have_an_example_for_its_variable(button: Button) -> bool:
    """A URL with a variable has an example."""
    return not button.has_variable or any(button.example)


def have_a_usable_url(button: Button) -> bool:
    """Absolute, not too long, with one variable at its very end at most."""
    url = button.url
    if len(url) > MOST_URL_CHARS or not re.match(r"https?://[^\s/?#{}]+", url):
        return False
    plain = url.removesuffix("{{1}}")
    return not re.search(r"\s", url) and "{{" not in plain and "}}" not in plain


def have_a_usable_number(button: Button) -> bool:
    """At most 20 characters of digits and punctuation, after an optional plus."""
    return bool(re.fullmatch(r"\+?[0-9 ()-]{5,20}", button.phone_number, re.ASCII)) and (len(button.phone_number) <= 20)


def have_at_most(max_count: int, kind: ButtonKind | None = None) -> Must:
    """No more than so many buttons, of one kind or in all."""

    def must(draft: Draft) -> Wrong | None:
        count = sum(kind is None or button.kind is kind for button in draft.buttons)
        return None if count <= max_count else Wrong(detail=f"there are {count}")

    return must


def have_a(kind: ButtonKind) -> Must:
    """One of the buttons is of that kind."""
    return lambda draft: None if any(one.kind is kind for one in draft.buttons) else Wrong()


def be_just_one(kind: ButtonKind) -> Must:
    """There is one button, of that kind."""
    return lambda draft: None if [one.kind for one in draft.buttons] == [kind] else Wrong()


def hold_one_of(*kinds: ButtonKind) -> If:
    """Drafts that have a button of one of the kinds."""
    return lambda draft: any(button.kind in kinds for button in draft.buttons)


def stand_alone(*kinds: ButtonKind) -> Must:
    """A button of these kinds is the only one."""
    return lambda draft: Wrong() if len(draft.buttons) > 1 and hold_one_of(*kinds)(draft) else None


def begin_as_an_offer(draft: Draft) -> Wrong | None:
    """The copy code, if any, comes first, and the URL next."""
    order = [button.kind for button in draft.buttons]
    if ButtonKind.COPY_CODE in order:
        return None if order[:2] == [ButtonKind.COPY_CODE, ButtonKind.URL] else Wrong()
    return None if order[:1] == [ButtonKind.URL] else Wrong()


def group_quick_replies(draft: Draft) -> Wrong | None:
    """Quick replies stand together, before or after all others."""
    quick = [button.kind is ButtonKind.QUICK_REPLY for button in draft.buttons]
    changes = sum(one != other for one, other in itertools.pairwise(quick))
    return Wrong() if changes > 1 else None


def name_apps_at_most(max_count: int) -> Is:
    """A button names at most so many applications."""
    return lambda button: len(button.supported_apps) <= max_count


def be_a_package(app: SupportedApp) -> bool:
    """Two or more segments, each of which begins with a letter."""
    name = app.package_name
    return len(name) <= 224 and bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+", name, re.ASCII))


def be_a_signature(app: SupportedApp) -> bool:
    """Exactly eleven characters of base64."""
    return bool(re.fullmatch(r"[A-Za-z0-9+/=]{11}", app.signature_hash, re.ASCII))
