"""The table of kinds of session message."""

from tests.support.session_samples import SESSION_SAMPLES
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.session_messages.content import SessionContent
from waypost.domain.session_messages.plain import SessionReaction


def test_every_kind_is_a_row_of_the_table_and_lacks_no_method() -> None:
    # By name: `slots` creates each class twice.
    assert {kind.__name__ for kind in SESSION_KINDS} == {kind.__name__ for kind in SessionContent.__subclasses__()}
    assert [kind for kind in SESSION_KINDS if kind.__abstractmethods__] == []


def test_no_two_kinds_share_a_wire_type_or_a_stored_name() -> None:
    wire_types = [name for kind in SESSION_KINDS for name in kind.wire_types]
    stored = [kind.stored_as for kind in SESSION_KINDS]

    assert len(set(wire_types)) == len(wire_types)
    assert len(set(stored)) == len(stored)


def test_every_kind_has_a_sample() -> None:
    """A reaction is of another message, so its tests make their own."""
    sent = {sample.sent["type"] for sample in SESSION_SAMPLES.values()}

    assert [kind for kind in SESSION_KINDS if sent.isdisjoint(kind.wire_types)] == [SessionReaction]
