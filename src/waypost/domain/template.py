"""Templates: what a partner submits, and what we keep of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from waypost.domain.buttons import Button


class TemplateType(StrEnum):
    """Source: spec, "What the service does", 3."""

    TEXT = "TEXT"
    IMAGE = "IMAGE"
    LOCATION = "LOCATION"
    VIDEO = "VIDEO"
    DOCUMENT = "DOCUMENT"
    PRODUCT = "PRODUCT"
    CATALOG = "CATALOG"
    CAROUSEL = "CAROUSEL"


class Category(StrEnum):
    """Source: spec, "Create template", category."""

    AUTHENTICATION = "AUTHENTICATION"
    MARKETING = "MARKETING"
    UTILITY = "UTILITY"


class TemplateStatus(StrEnum):
    """Where a template stands. Source: facts 3.4."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    FAILED = "FAILED"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"
    IN_APPEAL = "IN_APPEAL"
    DELETED = "DELETED"


# fmt: off
PRIORITY: Final = {  # Source: facts 3.2: all samples agree, no page explains it
    Category.MARKETING:      1,
    Category.UTILITY:        2,
    Category.AUTHENTICATION: 3,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Draft:
    """A template as submitted: decoded, not yet checked. Absent texts are None, as sent otherwise."""

    element_name: str | None = None
    language_code: str = "en_US"
    category: str | None = None
    template_type: str | None = None
    vertical: str | None = None
    content: str | None = None
    example: str | None = None
    header: str | None = None
    example_header: str | None = None
    footer: str | None = None
    buttons: tuple[Button, ...] = ()
    enable_sample: bool = False
    allow_template_category_change: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A checked draft with an identity and a status.

    Attributes:
        namespace: the business account's; shown in the record.
        operator_template_id: the operator's id once it has the template.
        reason: why it was rejected, in the operator's words.
    """

    id: str
    partner_id: int
    app_id: str
    business_account_id: str
    namespace: str
    draft: Draft
    status: TemplateStatus
    created_on_ms: int
    modified_on_ms: int
    category: Category
    quality: str = "UNKNOWN"
    stage: str = "NONE"
    retry: int = 0
    old_category: str | None = None
    operator_template_id: str | None = None
    reason: str | None = None
