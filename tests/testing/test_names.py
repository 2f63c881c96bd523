"""What a test's partner is called repeats, and is nobody else's."""

from waypost.testing.names import PartnerNames


def test_same_seed_gives_the_same_names() -> None:
    one, other = PartnerNames("tests/test_shop.py::test_tap"), PartnerNames("tests/test_shop.py::test_tap")

    assert (one.source, one.waba_id, one.phone("Ann")) == (other.source, other.waba_id, other.phone("Ann"))


def test_another_test_and_another_attempt_have_other_names() -> None:
    names = [PartnerNames("a"), PartnerNames("b"), PartnerNames("a", 1)]

    assert len({one.source for one in names}) == 3
    assert len({one.waba_id for one in names}) == 3
    assert len({one.email for one in names}) == 3


def test_numbers_have_eleven_digits_in_an_area_code_that_nobody_has() -> None:
    names = PartnerNames("any")

    assert len(names.source) == len(names.phone("Ann")) == 11
    assert names.source.startswith("1555")
    assert names.phone("Ann").startswith("1555")


def test_no_phone_has_a_number_that_a_business_may_have() -> None:
    sources = {PartnerNames(str(at)).source[:5] for at in range(300)}
    phones = {PartnerNames(str(at)).phone("Ann")[:5] for at in range(300)}

    assert not sources & phones


def test_digits_that_are_taken_are_not_given_again() -> None:
    names = PartnerNames("any")

    first = names.phone("Ann")
    second = names.phone("Ann", used=[first])

    assert second != first
    assert second == names.phone("Ann", used=[first])


def test_ids_have_the_operators_lengths() -> None:
    names = PartnerNames("any")

    assert [len(one) for one in (names.waba_id, names.phone_number_id, names.graph_app_id)] == [16] * 3
    assert len(names.namespace.split("_")) == 5
