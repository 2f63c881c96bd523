"""Order and exactly-once under random mishaps, against a model of the street, on both engines."""

import os
import random
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.properties.street_model import ModelStreet
from tests.support.callback_sink import CallbackSink
from tests.support.postgres import UNSAFE, running_server

STEPS = int(os.environ.get("WAYPOST_STREET_STEPS", "150"))
ENGINES = ("sqlite", "postgresql")


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    """A server of its own."""
    with running_server(UNSAFE) as server:
        yield server.create("model")


@pytest.mark.timeout(60 + STEPS)
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # sockets of the killed
@pytest.mark.parametrize("engine", ENGINES)
async def test_every_message_is_accounted_for_whatever_happens(
    engine: str, tmp_path: Path, sink: CallbackSink, request: pytest.FixtureRequest
) -> None:
    seed = int(os.environ.get("WAYPOST_STREET_SEED", "0")) or secrets.randbelow(10**9)
    url = request.getfixturevalue("server_url") if engine == "postgresql" else None
    async with aiohttp.ClientSession() as http:
        model = ModelStreet(tmp_path, sink, http, random.Random(seed), url)
        await model.open()
        try:
            await model.walk(STEPS)
            await model.heal()
            wrong = await model.complaints()
        finally:
            await model.close()

    acknowledged = sum(one.message_id is not None for one in model.sent)
    sys.stderr.write(
        f"seed {seed}, {engine}: {STEPS} steps {dict(model.steps)}; {len(model.sent)} sent, "
        f"{acknowledged} acknowledged, {len(sink.taken)} callbacks taken, ends {dict(model.ends)}\n"
    )
    assert not wrong, "\n".join([f"seed {seed}", *wrong[:30], " ".join(model.story)])
    assert acknowledged > STEPS // 5
    assert sum(model.ends[state] for state in ("sent", "delivered", "read")) > acknowledged // 2
