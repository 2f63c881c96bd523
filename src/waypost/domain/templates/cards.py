"""Cards of a carousel template."""

from dataclasses import dataclass, field

from waypost.domain.templates.buttons import TemplateButton


@dataclass(frozen=True, slots=True)
class Card:
    """One card as submitted. Absent texts are None.

    Attributes:
        header_type: as sent, upper case: IMAGE or VIDEO; checked by the rule table.
        media_url: of its sample; vetted, and fetched at creation.
        media_id: of an upload for sending.
        example_media: a handle id.
        submitted: the JSON object as sent, as of a button.

    Source: spec, "Card object (CAROUSEL)"; facts 3.1, `cards`.
    """

    header_type: str = ""
    media_url: str | None = None
    media_id: str | None = None
    example_media: str | None = None
    body: str | None = None
    sample_text: str | None = None
    buttons: tuple[TemplateButton, ...] = ()
    submitted: str = field(default="", compare=False)
