"""A valid Flow in which one thing is changed gets an error of the right name, at the line of the change."""

from collections import Counter

from tests.flow_json.mutations import KINDS, NO_JSON, outcomes

COUNT, SEED = 200, 1
LEAST_SHARE = 0.95


def test_single_changes_are_named_at_their_lines() -> None:
    done = list(outcomes(COUNT, SEED))

    missed = [(one.kind, one.expected, one.line, one.found) for one in done if not one.is_found]
    assert len(missed) <= (1 - LEAST_SHARE) * COUNT, missed
    assert Counter(one.kind for one in done).keys() == {*KINDS, NO_JSON}


def test_same_seed_gives_the_same_changes() -> None:
    assert list(outcomes(40, 7)) == list(outcomes(40, 7))
