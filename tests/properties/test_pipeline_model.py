"""Order and exactly-once under random mishaps, against a model of the pipeline, on both engines."""

import gc
import os
import random
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.properties.pipeline_model import ModelPipeline
from tests.support.callback_sink import CallbackSink
from tests.support.cut_connection import CutLine, cut_line
from tests.support.postgres import UNSAFE, Server, running_server

STEPS = int(os.environ.get("WAYPOST_STREET_STEPS", "100"))
ENGINES = ("sqlite", "postgresql")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of its own."""
    with running_server(UNSAFE) as server:
        yield server


@pytest.fixture
def line(server: Server) -> Iterator[CutLine]:
    """To a database of its own."""
    with cut_line(server.create(f"model_{secrets.token_hex(4)}")) as line:
        yield line


@pytest.fixture(autouse=True)
def the_killed() -> Iterator[None]:
    """Their sockets are complained of here, and not in a later test."""
    yield
    gc.collect()


@pytest.mark.timeout(60 + STEPS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of the killed
@pytest.mark.parametrize("engine", ENGINES)
async def test_every_message_is_accounted_for_whatever_happens(
    engine: str, tmp_path: Path, sink: CallbackSink, request: pytest.FixtureRequest
) -> None:
    # The suite walks one way; `WAYPOST_STREET_STEPS` with another seed, or 0 for any, walks on.
    seed = int(os.environ.get("WAYPOST_STREET_SEED", "7")) or secrets.randbelow(10**9)
    line: CutLine | None = request.getfixturevalue("line") if engine == "postgresql" else None
    url = None if line is None else line.url
    async with aiohttp.ClientSession() as http:
        model = ModelPipeline(tmp_path, sink, http, random.Random(seed), url, line)
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
        f"{acknowledged} acknowledged, {len(sink.taken)} callbacks taken, {model.replayed} replays, ends {dict(model.ends)}, "
        f"{len(model.heard)} heard of which {sum(one.tapped is not None for one in model.heard)} taps, "
        f"templates {dict(model.templates.ends)}, "
        f"commits lost {dict(line.lost) if line else {}}\n"
    )
    assert not wrong, "\n".join([f"seed {seed}", *wrong[:30], " ".join(model.story)])
    assert acknowledged > STEPS // 20
    assert sum(model.ends[state] for state in ("sent", "delivered", "read")) > acknowledged // 4
