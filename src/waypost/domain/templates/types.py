"""The template types: a table for rules, samples, sends, the operator's body and the editor.

A fact about a single type is a rule in `rules.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from waypost.domain.templates.buttons import VIEW_CATALOG_BUTTON, VIEW_ITEMS_BUTTON, TemplateButton


class TemplateType(StrEnum):
    """The type of a template. Source: spec, "What the service does", 3."""

    TEXT = "TEXT"
    IMAGE = "IMAGE"
    LOCATION = "LOCATION"
    VIDEO = "VIDEO"
    DOCUMENT = "DOCUMENT"
    PRODUCT = "PRODUCT"
    CATALOG = "CATALOG"
    CAROUSEL = "CAROUSEL"
    GIF = "GIF"  # Source: ledger C12


class HeaderFormat(Enum):
    """The header above the body."""

    TEXT = "a text of the template's own"
    MEDIUM = "a medium that each send names"
    LOCATION = "a place that each send names"
    FIRST_LINE = "the first line of the body"
    NONE = "nothing"


@dataclass(frozen=True, slots=True)
class HeaderMedium:
    """The medium of a header.

    Attributes:
        name: in a send's `message`.
        needs_sample: true if the spec requires a sample even when `enableSample` is false.
        in_cards: true if a carousel's cards may have it.
        accepts: the MIME types of a sample, for the `accept` attribute of a file input.
        hint: the accepted samples, for the editor.
        max_bytes: of a sample, if it is less than of an upload of its MIME type.
    """

    name: str
    needs_sample: bool
    in_cards: bool
    accepts: str
    hint: str
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TemplateTypeRow:
    """A row of the table of template types.

    Attributes:
        label: in the editor.
        added_button: the button that the service adds.
        for_sales: true if it is for MARKETING and UTILITY only.
        cloud_only: true if apps of the on-premises variant cannot use it.
        may_be_offer: true if it can be a limited-time offer.
        has_cards: true if it consists of cards.
        note: shown in the editor instead of a header input.
    """

    label: str
    header: HeaderFormat
    medium: HeaderMedium | None = None
    added_button: TemplateButton | None = None
    for_sales: bool = False
    cloud_only: bool = False
    may_be_offer: bool = False
    has_cards: bool = False
    note: str = ""

    @property
    def is_header_sent(self) -> bool:
        """True if each send names the content of the header."""
        return self.header in (HeaderFormat.MEDIUM, HeaderFormat.LOCATION)


_IMAGE: Final = HeaderMedium("image", False, True, "image/jpeg,image/png", "JPEG or PNG, at most 5 MB.")
_VIDEO: Final = HeaderMedium("video", False, True, "video/mp4", "MP4, at most 16 MB.")
_DOCUMENT: Final = HeaderMedium("document", True, False, "application/pdf", "PDF, at most 100 MB.")
_GIF: Final = HeaderMedium(
    "gif",
    needs_sample=True,
    in_cards=False,
    accepts="video/mp4",
    hint="MP4 that is played again and again, at most 3.5 MB.",
    max_bytes=3_500_000,
)

TEMPLATE_TYPES: Final[Mapping[str, TemplateTypeRow]] = {  # Source: spec, "Create template", "Rules by type"; facts 3.1
    TemplateType.TEXT: TemplateTypeRow("Text", HeaderFormat.TEXT, may_be_offer=True),
    TemplateType.IMAGE: TemplateTypeRow("Image", HeaderFormat.MEDIUM, _IMAGE),
    TemplateType.VIDEO: TemplateTypeRow("Video", HeaderFormat.MEDIUM, _VIDEO),
    TemplateType.DOCUMENT: TemplateTypeRow("Document", HeaderFormat.MEDIUM, _DOCUMENT),
    TemplateType.GIF: TemplateTypeRow("GIF", HeaderFormat.MEDIUM, _GIF),
    TemplateType.LOCATION: TemplateTypeRow(
        "Location", HeaderFormat.LOCATION, note="Each message has a location, which is shown as a map above the text."
    ),
    TemplateType.CAROUSEL: TemplateTypeRow(
        "Carousel of cards", HeaderFormat.NONE, for_sales=True, cloud_only=True, has_cards=True
    ),
    TemplateType.CATALOG: TemplateTypeRow(
        "Catalogue",
        HeaderFormat.NONE,
        added_button=VIEW_CATALOG_BUTTON,
        for_sales=True,
        cloud_only=True,
        note="The button that shows the catalogue is added automatically.",
    ),
    TemplateType.PRODUCT: TemplateTypeRow(
        "Products",
        HeaderFormat.FIRST_LINE,
        added_button=VIEW_ITEMS_BUTTON,
        for_sales=True,
        note="Each message lists the products; the button that shows them is added automatically.",
    ),
}
_UNKNOWN: Final = TemplateTypeRow("", HeaderFormat.TEXT)


def type_row(name: str | None) -> TemplateTypeRow:
    """Return the row of a type; of an unknown name, the row of a template with a body and nothing specific."""
    return TEMPLATE_TYPES.get(name or "", _UNKNOWN)


def find_types(matches: Callable[[TemplateTypeRow], bool]) -> tuple[TemplateType, ...]:
    """Return the types whose rows match, in the order of the enumeration."""
    return tuple(kind for kind in TemplateType if (row := TEMPLATE_TYPES.get(kind)) is not None and matches(row))


ADDED_BUTTON_TYPES: Final = {
    row.added_button.kind: TemplateType(name) for name, row in TEMPLATE_TYPES.items() if row.added_button
}
"""The type to which the service adds a button of this kind; no other type has one."""
