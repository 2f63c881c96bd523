"""A story has one line for what is the same within a second, and a few of what broke."""

from simulation.story import MAX_BROKEN, write_story


def test_same_events_within_a_second_are_one_line() -> None:
    events = [(1.0, "phone reads"), (1.2, "partner sends"), (1.4, "phone reads"), (9.0, "phone reads")]

    lines = write_story(events, [], ["a message is lost"])

    assert lines == [
        "    1.000 phone reads (2 times until 1.400 s)",
        "    1.200 partner sends",
        "    9.000 phone reads",
        "   BROKEN a message is lost",
    ]


def test_story_ends_with_some_of_what_broke() -> None:
    broken = [f"promise {number}" for number in range(MAX_BROKEN + 2)]

    assert write_story([], [], broken)[-1] == "   … and 2 more"
