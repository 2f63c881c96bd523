"""What the faults make of a response."""

import asyncio
from typing import Any

import pytest

from simulation.faults import halve_response, respond


@pytest.mark.parametrize("size", [0, 3000, 20_069, 700_000])
def test_half_of_a_response_is_shorter_than_its_length(size: int) -> None:
    """Its client can see that the rest is missing, and the server has no reason to reject it."""
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(respond(halve_response(send), 200, [], b"a" * size))

    start, body = sent
    assert body["more_body"]
    assert len(body["body"]) == size // 2 < int(dict(start["headers"])[b"content-length"])
