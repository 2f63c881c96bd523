"""The names of a test's partner are repeatable and unique."""

import pytest

from pytest_waypost.partner_setup import PartnerNames
from waypost.assembly.dev.partners.partner import DerivedNames


def test_same_seed_gives_the_same_names() -> None:
    first, second = PartnerNames("tests/test_shop.py::test_tap"), PartnerNames("tests/test_shop.py::test_tap")

    assert (first.source, first.waba_id, first.phone("Ann")) == (second.source, second.waba_id, second.phone("Ann"))


@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("seed", ["tests/test_shop.py::test_tap", "confirms an order", "Größe 7"])
def test_plugin_and_control_api_derive_the_same_names(seed: str, attempt: int) -> None:
    """A test keeps its numbers when it is rewritten in another language. Source: decision 0096."""
    plugin, server = PartnerNames(seed, attempt), DerivedNames(seed, attempt)
    attributes = ("source", "waba_id", "phone_number_id", "graph_app_id", "app_name", "email", "namespace")

    assert [getattr(plugin, name) for name in attributes] == [getattr(server, name) for name in attributes]
    assert plugin.secret("graph token") == server.secret("graph token")
    ann = plugin.phone("Ann")
    assert ann == server.phone("Ann", ())
    assert plugin.phone("Ann", [ann]) == server.phone("Ann", [ann])


def test_another_test_or_another_attempt_has_other_names() -> None:
    partners = [PartnerNames("a"), PartnerNames("b"), PartnerNames("a", 1)]

    assert len({names.source for names in partners}) == 3
    assert len({names.waba_id for names in partners}) == 3
    assert len({names.email for names in partners}) == 3


def test_numbers_have_eleven_digits_in_an_unassigned_area_code() -> None:
    names = PartnerNames("any")

    assert len(names.source) == len(names.phone("Ann")) == 11
    assert names.source.startswith("1555")
    assert names.phone("Ann").startswith("1555")


def test_phones_and_businesses_have_different_number_ranges() -> None:
    sources = {PartnerNames(str(at)).source[:5] for at in range(300)}
    phones = {PartnerNames(str(at)).phone("Ann")[:5] for at in range(300)}

    assert not sources & phones


def test_used_number_is_not_given_again() -> None:
    names = PartnerNames("any")

    first = names.phone("Ann")
    second = names.phone("Ann", used=[first])

    assert second != first
    assert second == names.phone("Ann", used=[first])


def test_ids_have_the_operators_lengths() -> None:
    names = PartnerNames("any")

    assert [len(number) for number in (names.waba_id, names.phone_number_id, names.graph_app_id)] == [16] * 3
    assert len(names.namespace.split("_")) == 5
