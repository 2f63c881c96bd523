"""The public client compares two templates."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import datetime

from pywa_async.types import templates as t

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN


async def test_sends_of_two_templates_are_compared(harness: ClientHarness) -> None:
    client, ids = harness.client, list[str]()
    for name in ("first", "second"):
        body = t.BodyText("Hats for less")
        template = t.Template(
            name=name, language=t.TemplateLanguage.ENGLISH_US, category=t.TemplateCategory.UTILITY, components=[body]
        )
        created = await client.create_template(template)
        await harness.wait_for_update(
            t.TemplateStatusUpdate, lambda update, created_id=created.id: update.template_id == created_id
        )
        ids.append(created.id)
    await client.send_template(ANN, "second", t.TemplateLanguage.ENGLISH_US, [])
    await harness.control("settings", {"limits": False}, method="PUT")
    now_s = harness.bench.clock.now_ms() // 1000
    end = datetime.datetime.fromtimestamp(now_s, datetime.UTC)

    result = await client.compare_templates(ids[0], ids[1], start=end - datetime.timedelta(days=7), end=end)

    assert result.times_sent == {ids[0]: 0, ids[1]: 1}
    assert result.block_rate == ids
    assert set(result.top_block_reason or {}) == set(ids)
