"""The samples of the nodes and edges that only read, beside the responses of a simulator that has one of everything."""

from typing import Any

from tests.simulator.accounts.test_groups import BOB, create_group, join
from tests.simulator.accounts.test_payment_configurations import create_configuration
from tests.simulator.conftest import ANN, APP, NUMBER_ID, WABA, Bench
from tests.simulator.flows.test_lifecycle import create_flow
from tests.support.flow_keys import PUBLIC_KEY
from waypost.base.json_values import list_or_none, object_or_none
from waypost.simulator.serving.graph_routes import NODE_IDS
from waypost.simulator.serving.nodes import operation
from waypost.simulator.state.accounts import Account, Business

BODY = {"type": "BODY", "text": "Hello {{1}}, how are you?", "example": {"body_text": [["Ann"]]}}


def shape(value: Any) -> Any:
    """Return a JSON value with types in place of the values; of a list the distinct shapes of its elements."""
    members, items = object_or_none(value), list_or_none(value)
    if members is not None:
        return {name: shape(member) for name, member in members.items()}
    if items is not None:
        return sorted({repr(shape(item)) for item in items})
    return type(value).__name__


async def fill(bench: Bench) -> dict[str, str]:
    """Give the account one of everything; return the ids by the names that paths have for them."""
    await bench.seed_template([BODY])
    flow = await create_flow(bench)
    await create_configuration(bench)
    code = await bench.graph("POST", f"{NUMBER_ID}/message_qrdls", params={"prefilled_message": "Hi"})
    automation = {"enable_welcome_message": True, "prompts": ["Book"], "commands": [
        {"command_name": "book", "command_description": "Book a table"},
    ]}  # fmt: skip
    for path, body in (
        ("username", {"username": "shop.one"}),
        ("conversational_automation", automation),
        ("whatsapp_business_encryption", {"business_public_key": PUBLIC_KEY}),
        ("settings", {"calling": {"status": "ENABLED"}}),
    ):
        changed = await bench.graph("POST", f"{NUMBER_ID}/{path}", json=body)
        assert changed.status == 200, changed.body
    group = await create_group(bench, join_approval_mode="approval_required")
    await join(bench, group, ANN, BOB)
    account = (await bench.control("GET", "state")).body["accounts"][0]
    return {
        "app_id": APP,
        "waba_id": WABA,
        "phone_number_id": NUMBER_ID,
        "template_id": "1400000000000004",
        "flow_id": flow.body["id"],
        "group_id": group["group_id"],
        "accounts.list_owned": account["owner_business_id"],
        "accounts.list_shared": account["partner_business_id"],
        "qr_code": code.body["code"],
        "configuration": "shop",
    }


async def test_samples_have_the_members_and_types_of_the_responses(bench: Bench) -> None:
    ids = await fill(bench)
    responses: dict[str, Any] = {}
    for row in operation.rows:
        assert isinstance(row.node, type)
        node_id = ids[row.name if row.node is Business else NODE_IDS[row.node]]
        edge = row.edge.replace("{}", ids["configuration" if row.node is Account else "qr_code"])
        response = await bench.graph("GET", f"{node_id}/{edge}".rstrip("/"))
        responses[row.name] = (response.status, shape(response.body))

    assert responses == {row.name: (200, shape(row.sample)) for row in operation.rows}
