"""Free-form carousels, call buttons and requests for contact details."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench

LINK = "https://cdn.example/a"


def card(index: int, **more: Any) -> dict[str, Any]:
    replies = [{"type": "quick_reply", "quick_reply": {"id": f"r-{index}", "title": "More"}}]
    return {
        "card_index": index,
        "type": "cta_url",
        "header": {"type": "image", "image": {"link": LINK}},
        "body": {"text": f"Card {index}"},
        "action": {"buttons": replies},
        **more,
    }


def carousel(*cards: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "carousel", "body": {"text": "Slide"}, "action": {"cards": list(cards)}}
    return {"type": "interactive", "interactive": content}


async def test_card_of_a_carousel_is_tapped(bench: Bench) -> None:
    await bench.send_from_phone()
    sent = await bench.send(carousel(card(0), card(1)))
    assert sent.status == 200, sent.body

    tap = {"card": 1, "index": 0, "wait_ms": 5000}
    tapped = await bench.control("POST", f"phones/{ANN}/tap", tap)

    assert tapped.status == 200, tapped.body
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    reply = bench.receiver.messages()[-1]["interactive"]["button_reply"]
    assert reply == {"id": "r-1", "title": "More"}


@pytest.mark.parametrize(
    ("cards", "rule"),
    [
        ([], "is required"),
        ([card(0)], "has 2 to 10 cards"),
        ([card(0), card(2)], "numbered by card_index"),
        ([card(0), card(1, header=None)], "['header'] is required"),
        ([card(0), card(1, action={})], "is required"),
        ([card(0), card(1, action=card(0)["action"])], "has an id twice"),
        ([card(0), card(1, body={"text": "x" * 161})], "at most 160"),
        (
            [card(0), card(1, action={"name": "cta_url", "parameters": {"display_text": "A", "url": LINK}})],
            "the same kinds of buttons",
        ),
    ],
)
async def test_invalid_carousel_is_rejected(bench: Bench, cards: list[dict[str, Any]], rule: str) -> None:
    rejected = await bench.send(carousel(*cards))

    assert rejected.status == 400
    assert rule in str(rejected.error)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"type": "voice_call", "action": {"name": "voice_call"}}, "VOICE_CALL"),
        ({"type": "request_contact_info", "action": {"name": "request_contact_info"}}, "REQUEST_CONTACT_INFO"),
    ],
)  # fmt: skip
async def test_button_for_a_call_or_for_contact_details_is_shown(
    bench: Bench, content: dict[str, Any], kind: str
) -> None:
    await bench.send_from_phone()
    message = {"type": "interactive", "interactive": {**content, "body": {"text": "Well?"}}}

    sent = await bench.send(message)

    assert sent.status == 200, sent.body
    assert [button["type"] for button in (await bench.inbox())[-1]["buttons"]] == [kind]
