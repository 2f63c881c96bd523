"""The table of template types is complete, and has of each type what the documents say."""

from waypost.domain.media import ACCEPTED_TYPES
from waypost.domain.templates.types import ADDED_BUTTON_TYPES, TEMPLATE_TYPES, HeaderFormat, TemplateType, type_row


def test_each_type_has_a_row() -> None:
    assert set(TEMPLATE_TYPES) == set(TemplateType)


def test_type_has_a_medium_where_its_header_is_one() -> None:
    for name, row in TEMPLATE_TYPES.items():
        assert (row.medium is not None) == (row.header is HeaderFormat.MEDIUM), name
        assert row.medium is None or row.medium.name == name.lower()


def test_editor_accepts_samples_of_types_that_an_upload_accepts() -> None:
    for row in TEMPLATE_TYPES.values():
        if row.medium is not None:
            assert set(row.medium.accepts.split(",")) <= set(ACCEPTED_TYPES)


def test_button_is_added_to_one_type_only() -> None:
    assert len(ADDED_BUTTON_TYPES) == sum(row.added_button is not None for row in TEMPLATE_TYPES.values())


def test_unknown_type_has_no_properties_of_a_type() -> None:
    for name in (None, "", "GALLERY"):
        row = type_row(name)
        assert (row.medium, row.added_button, row.has_cards, row.is_header_sent, row.may_be_offer) == (
            None,
            None,
            *(False,) * 3,
        )
