"""Templates as stored: a checked draft with its status."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from waypost.domain.templates.buttons import ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.types import type_row


class Category(StrEnum):
    """The category of a template. Source: spec, "Create template", category."""

    AUTHENTICATION = "AUTHENTICATION"
    MARKETING = "MARKETING"
    UTILITY = "UTILITY"


class TemplateStatus(StrEnum):
    """The status of a template. Source: facts 3.4."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    FAILED = "FAILED"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"
    IN_APPEAL = "IN_APPEAL"
    FLAGGED = "FLAGGED"
    LOCKED = "LOCKED"
    ARCHIVED = "ARCHIVED"
    SANDBOX_REQUESTED = "SANDBOX_REQUESTED"
    DELETED = "DELETED"


# fmt: off
CATEGORY_PRIORITIES: Final = {  # Source: facts 3.2: all samples agree, no page explains it
    Category.MARKETING:      1,
    Category.UTILITY:        2,
    Category.AUTHENTICATION: 3,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class TemplateEdit:
    """An edit that the operator has not accepted: it is on its way, or was rejected. Source: decision 0021."""

    draft: TemplateDraft  # the whole template as edited, with its category
    at_ms: int  # when the partner made it
    # PENDING; REJECTED: the operator rejected it; FAILED: it could not be sent
    status: TemplateStatus = TemplateStatus.PENDING
    reason: str | None = None  # of the rejection, from the operator


@dataclass(frozen=True, slots=True)
class Template:
    """A checked draft with an identity and a status: the operator's version, where the operator has one."""

    id: str
    partner_id: int
    app_id: str
    business_account_id: str
    namespace: str  # the business account's; shown in the record
    draft: TemplateDraft
    status: TemplateStatus
    created_on_ms: int
    modified_on_ms: int
    category: Category  # the operator's; the draft's until the operator changes it
    quality: str = "UNKNOWN"  # UNKNOWN, HIGH, MEDIUM or LOW
    stage: str = "NONE"
    retry: int = 0
    old_category: str | None = None
    operator_template_id: str | None = None  # the operator's id, once it has the template
    reason: str | None = None  # of the rejection, from the operator
    new_category: str | None = None  # the category that the operator has announced (facts 3.2)
    edited: bool = False  # true if the draft differs from the created one: the record's `editTemplate`
    # the operator's time of its last status decision, whole seconds since the epoch; earlier decisions are out of date.
    # 0: not known.
    decided_on_s: int = 0
    edit: TemplateEdit | None = None  # beside the operator's version, until the operator accepts it

    @property
    def pending_edit(self) -> TemplateEdit | None:
        """The edit that is on its way to the operator."""
        return self.edit if self.edit is not None and self.edit.status is TemplateStatus.PENDING else None

    @property
    def edited_version(self) -> "Template":
        """The template as the edit on its way to the operator makes it; itself if there is none."""
        edit = self.pending_edit
        if edit is None:
            return self
        return replace(self, draft=edit.draft, category=Category(edit.draft.category or self.category), edited=True)


def add_type_button(draft: TemplateDraft) -> TemplateDraft:
    """Return the draft with the button that the service adds to its type; one that was sent is not added again.

    Source: spec, "Create template", rule 5; facts 3.1: one client sends it itself.
    """
    added = type_row(draft.template_type).added_button
    if added is None:
        return draft
    others = tuple(button for button in draft.buttons if button.kind is not added.kind)
    sent = next((button for button in draft.buttons if button.kind is added.kind), added)
    return replace(draft, buttons=(*others, replace(sent, text=sent.text or added.text)))


def sample_reference(part: TemplateDraft | Card) -> str | None:
    """Return the reference to the sample of a header's medium: a handle id, else a media id; else None."""
    return part.example_media or part.media_id


def is_sample_url_only(part: TemplateDraft | Card) -> bool:
    """True if the sample is given by a URL only; types without a medium need none."""
    if isinstance(part, TemplateDraft) and type_row(part.template_type).medium is None:
        return False
    return bool(part.media_url) and sample_reference(part) is None


def sample_references(draft: TemplateDraft) -> tuple[str, ...]:
    """Return the handle ids and media ids whose bytes the operator needs for a review, each once.

    Those of types other than media and carousel are not used. One may consist of several handles of ours,
    one per line; it is returned whole, as the template stores it.
    """
    parts = [*([draft] if type_row(draft.template_type).medium else []), *(draft.cards or ())]
    return tuple(dict.fromkeys(sample for part in parts if (sample := sample_reference(part))))


_LABEL_OF_OPERATOR: Final = {ButtonKind.COPY_CODE, ButtonKind.CATALOG, ButtonKind.MPM}
"""Kinds of buttons whose label the operator sets. Source: operator's facts 2.2."""


def have_same_contents(one: TemplateDraft, other: TemplateDraft) -> bool:
    """True if two drafts have the same type, texts, buttons, cards and offer; samples and settings do not count."""
    return _contents(one) == _contents(other)


def _contents(draft: TemplateDraft) -> tuple[Any, ...]:
    if draft.category == Category.AUTHENTICATION:  # the operator writes its texts (decision 0016)
        code = (draft.add_security_recommendation, draft.code_expiration_minutes)
        return (Category.AUTHENTICATION, code, _buttons(draft.buttons))
    offer = ((draft.limited_offer_text or "").strip(), bool(draft.has_expiration)) if draft.is_lto else None
    return (
        draft.template_type,
        _text(draft.header),
        _text(draft.content),
        _text(draft.footer),
        _buttons(draft.buttons),
        tuple((card.header_type, _text(card.body), _buttons(card.buttons)) for card in draft.cards or ()),
        offer,
    )


def _text(text: str | None) -> str:
    """Return a text without the spaces around it and with one kind of line break: the operator may change both."""
    return (text or "").replace("\r\n", "\n").strip()


def _buttons(buttons: tuple[TemplateButton, ...]) -> tuple[Any, ...]:
    return tuple(
        (
            button.kind,
            "" if button.kind in _LABEL_OF_OPERATOR else _text(button.text),
            "" if button.kind is ButtonKind.OTP else button.url,
            "".join(filter(str.isdecimal, button.phone_number)),
            button.flow_id,
        )
        for button in buttons
    )


@dataclass(frozen=True, slots=True)
class TemplateFilter:
    """The filter and the page of a list of templates; None: no restriction."""

    template_id: str | None = None
    element_name: str | None = None
    template_types: Collection[str] | None = None
    statuses: Collection[str] | None = None  # matches any of them, as the other sets do
    stages: Collection[str] | None = None
    categories: Collection[str] | None = None
    qualities: Collection[str] | None = None
    language_code: str | None = None
    from_ms: int | None = None  # created at this time or later
    until_ms: int | None = None  # created at this time or earlier
    at_most: int | None = None  # templates of a page; None: all
    skipped: int = 0  # number of newer templates, on earlier pages
