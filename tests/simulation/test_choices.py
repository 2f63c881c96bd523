"""A decision of a seed depends on its name and number alone, so that switching one off leaves the others."""

import pytest

from simulation.choices import KINDS, Choices, declare, swarm_share

declare({"test: late": "something was late", "test: lost": "something was lost"})


def happened(choices: Choices, name: str = "test: lost") -> list[bool]:
    return [choices.happens(name, 0.5) for _ in range(50)]


def test_decision_depends_on_nothing_but_seed_name_and_number() -> None:
    alone, mixed = Choices(1, shares={}), Choices(1, shares={})
    expected = happened(alone)
    actual: list[bool] = []
    for _ in range(50):
        mixed.happens("test: late", 0.5)
        actual.append(mixed.happens("test: lost", 0.5))

    assert actual == expected
    assert True in expected
    assert False in expected
    assert happened(Choices(2, shares={})) != expected


def test_switching_one_off_leaves_the_others() -> None:
    first = Choices(1, shares={})
    expected = happened(first)
    one = first.made[3]

    expected[one.nth] = False

    assert happened(Choices(1, off={one.key}, shares={})) == expected


def test_only_the_given_decisions_happen() -> None:
    first = Choices(1, shares={})
    happened(first)
    keys = {decision.key for decision in first.made[:3]}
    again = Choices(1, shares={}, only=keys)

    assert sum(happened(again)) == 3
    assert again.pick("option", ["plain", "other"]) == "plain"
    assert again.between("seconds", 3, 5) == 3


def test_details_go_with_what_they_belong_to() -> None:
    def details(choices: Choices) -> dict[int, list[object]]:
        for _ in range(50):
            if choices.happens("test: lost", 0.5):
                choices.pick("option", "abcdef", of="test: lost")
                choices.between("seconds", 1, 5, of="test: lost")
        return {decision.nth: decision.details for decision in choices.made}

    first = Choices(1, shares={})
    expected = details(first)
    one = first.made[0]
    del expected[one.nth]

    assert details(Choices(1, off={one.key}, shares={})) == expected
    assert all(len(values) == 2 for values in expected.values())


def test_seed_switches_half_of_the_kinds_off_and_varies_the_shares_of_the_others() -> None:
    shares = [swarm_share(seed, "test: lost") for seed in range(1000)]

    assert 400 < shares.count(0) < 600
    assert len(set(shares)) == 4
    off = shares.index(0)
    assert not Choices(off).happens("test: lost", 1)


def test_what_can_happen_is_declared() -> None:
    assert "test: never" not in KINDS
    with pytest.raises(LookupError, match="test: never"):
        Choices(1).happens("test: never", 1)


def test_part_of_a_kind_happens_in_seeds_that_switch_it_off() -> None:
    seed = next(seed for seed in range(100) if swarm_share(seed, "test: lost") == 0)
    choices = Choices(seed)

    assert not any(happened(choices))
    assert any(choices.happens("test: lost", 0.5, of="test: late") for _ in range(50))
