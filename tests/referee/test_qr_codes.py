"""The public client creates, lists, changes and deletes QR codes."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from tests.referee.public_client import ClientHarness


async def test_qr_code_is_created_listed_changed_and_deleted(harness: ClientHarness) -> None:
    client = harness.client
    created = await client.create_qr_code("Hi, hats?", image_type="SVG")
    second = await client.create_qr_code("Caps?")
    listed = await client.get_qr_codes()
    shown = await client.get_qr_code(created.code, image_type="PNG")
    changed = await client.update_qr_code(created.code, "Hello, hats?")
    deleted = await client.delete_qr_code(created.code)

    assert {(code.code, code.qr_image_url) for code in listed} == {(created.code, None), (second.code, None)}
    assert shown is not None
    assert shown.qr_image_url is not None
    assert shown.qr_image_url.endswith(".png")
    assert (changed.code, changed.deep_link_url) == (created.code, created.deep_link_url)
    assert changed.prefilled_message == "Hello, hats?"
    assert deleted.success
    assert await client.get_qr_code(created.code) is None
    assert [code.code for code in await client.get_qr_codes()] == [second.code]
