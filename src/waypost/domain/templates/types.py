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
    """The medium of a header."""

    name: str  # in a send's `message`
    needs_sample: bool  # true if the spec requires a sample even when `enableSample` is false
    in_cards: bool  # true if a carousel's cards may have it
    accepts: str  # the MIME types of a sample, for the `accept` attribute of a file input
    hint: str  # the accepted samples, for the editor
    max_bytes: int | None = None  # of a sample, if it is less than of an upload of its MIME type


@dataclass(frozen=True, slots=True)
class TemplateTypeRow:
    """A row of the table of template types."""

    label: str  # in the editor
    header: HeaderFormat
    medium: HeaderMedium | None = None
    added_button: TemplateButton | None = None  # the button that the service adds
    for_sales: bool = False  # true if it is for MARKETING and UTILITY only
    cloud_only: bool = False  # true if apps of the on-premises variant cannot use it
    may_be_offer: bool = False  # true if it can be a limited-time offer
    has_cards: bool = False  # true if it consists of cards
    note: str = ""  # shown in the editor instead of a header input

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


# Source: operator's facts 2.5, with `ar_SA` and `es_VE` that a client has too; facts 3.9. The union of both
# lists: `es_CRI` is the operator's own spelling, `es_CR` is in facts 3.9 only.
_LANGUAGE_CODES: Final = (
    "af sq ar ar_EG ar_LB ar_MA ar_QA ar_AE ar_SA az be_BY bn bn_IN bg ca zh_CN zh_HK zh_TW hr cs da prs_AF nl "
    "nl_BE en en_AU en_CA en_GH en_IN en_IE en_JM en_MY en_NZ en_QA en_SG en_AE en_UG en_GB en_US en_ZA et fil fi "
    "fr fr_BE fr_CA fr_CH fr_CI fr_MA ka de de_AT de_CH el gu ha he hi hu id ga it ja kn kk rw_RW ko ky_KG lo lv "
    "lt mk ms ml mr nb ps_AF fa pl pt_BR pt_PT pa ro ru sr si_LK sk sl es es_AR es_CL es_CO es_CR es_CRI es_DO "
    "es_EC es_HN es_MX es_PA es_PE es_ES es_UY es_VE sw sv ta te th tr uk ur uz vi zu"
)
LANGUAGES: Final = tuple(_LANGUAGE_CODES.split())

_CANONICAL_CODES: Final = {code.lower(): code for code in LANGUAGES}


def canonical_language(code: str) -> str:
    """Return a language code in the operator's spelling, whatever its case; an unknown one unchanged.

    Source: facts 3.9: one client writes `pt_br`.
    """
    return _CANONICAL_CODES.get(code.strip().lower(), code)
