"""Ordering and exactly-once delivery under random faults, against a model of the pipeline, on both engines."""

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
from tests.support.commit_proxy import CommitProxy, open_commit_proxy
from tests.support.postgres import UNSAFE, Server, running_server

STEPS = int(os.environ.get("WAYPOST_MODEL_STEPS", "100"))
ENGINES = ("sqlite", "postgresql")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL server for this module."""
    with running_server(UNSAFE) as server:
        yield server


@pytest.fixture
def commit_proxy(server: Server) -> Iterator[CommitProxy]:
    """A proxy to a new database."""
    with open_commit_proxy(server.create(f"model_{secrets.token_hex(4)}")) as commit_proxy:
        yield commit_proxy


@pytest.fixture(autouse=True)
def collect_sockets_of_killed_processes() -> Iterator[None]:
    """Collect garbage, so that ResourceWarnings of killed processes appear here, not in a later test."""
    yield
    gc.collect()


@pytest.mark.timeout(60 + STEPS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of killed processes
@pytest.mark.parametrize("engine", ENGINES)
async def test_every_message_is_accounted_for_under_random_faults(
    engine: str, tmp_path: Path, sink: CallbackSink, request: pytest.FixtureRequest
) -> None:
    # The suite always takes the same walk; `WAYPOST_MODEL_STEPS` with another seed, or 0 for a random one, takes others.
    seed = int(os.environ.get("WAYPOST_MODEL_SEED", "7")) or secrets.randbelow(10**9)
    commit_proxy: CommitProxy | None = request.getfixturevalue("commit_proxy") if engine == "postgresql" else None
    url = None if commit_proxy is None else commit_proxy.url
    async with aiohttp.ClientSession() as http:
        model = ModelPipeline(tmp_path, sink, http, random.Random(seed), url, commit_proxy)
        await model.open()
        try:
            await model.walk(STEPS)
            await model.heal()
            problems = await model.violations()
        finally:
            await model.close()

    acknowledged = sum(sent.message_id is not None for sent in model.sent)
    sys.stderr.write(
        f"seed {seed}, {engine}: {STEPS} steps {dict(model.steps)}; {len(model.sent)} sent, "
        f"{acknowledged} acknowledged, {len(sink.accepted)} callbacks delivered, {model.replayed} replays, final states {dict(model.final_states)}, "
        f"{len(model.phone_messages)} from phones, of which {sum(message.tapped is not None for message in model.phone_messages)} taps, "
        f"templates {dict(model.templates.final_states)}, "
        f"commits lost {dict(commit_proxy.lost) if commit_proxy else {}}\n"
    )
    assert not problems, "\n".join([f"seed {seed}", *problems[:30], " ".join(model.step_log)])
    assert acknowledged > STEPS // 20
    assert sum(model.final_states[state] for state in ("sent", "delivered", "read")) > acknowledged // 4
