"""Every operation has a readable name of its own."""

from waypost.api.routes import ROUTES, operation_titles


def test_each_route_has_a_title_of_its_own() -> None:
    titles = operation_titles()

    assert set(titles) == {row.name for row in ROUTES}
    assert len(set(titles.values())) == len(ROUTES)
    assert all(title[0].isupper() and "_" not in title.partition("(")[0] for title in titles.values())


def test_title_says_what_the_operation_does() -> None:
    titles = operation_titles()

    assert titles["POST /partner/account/login"] == "Log in: get partner token"
    assert titles["POST /partner/app/{app_id}/template/msg"] == "Send template message"
    assert titles["POST /wa/app/{app_id}/template/v1/msg"] == "Send template message (self-serve)"
