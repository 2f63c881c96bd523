"""The admin API's operation that replaces the instance key while the service runs."""

import asyncio
from dataclasses import replace
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.base.encryption import InstanceKey, derive_app_token, hash_secret
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.store.accounts.partners import all_apps, replace_app_tokens

MAX_KEEP_OLD_S: Final = 30 * 86_400
SWITCH_TIMEOUT_S: Final = 60.0
"""How long a replacement waits for every process to use the new key; each reads the record every few seconds."""
_POLL_S: Final = 0.1
_APPS_AT_ONCE: Final = 200

operation = AdminOperations()


class KeyReplacement(msgspec.Struct, forbid_unknown_fields=True):
    """A replacement of the instance key."""

    app_tokens: Annotated[
        Literal["keep", "renew"],
        Meta(
            description=(
                "`keep`: app tokens, signing keys of callbacks, partner tokens and media URLs stay as they "
                "are; `renew`: they are derived from the new key, and those of before are accepted for a while."
            )
        ),
    ] = "keep"
    keep_old_for_s: Annotated[
        int, Meta(description="Seconds for which renewed tokens and keys of before are still accepted.")
    ] = 86_400

    def __post_init__(self) -> None:
        """Check that the time is limited."""
        if not 0 <= self.keep_old_for_s <= MAX_KEEP_OLD_S:
            raise invalid_field("keep_old_for_s", f"0 to {MAX_KEEP_OLD_S} seconds")


class ReplacedKey(msgspec.Struct):
    """The effects of a replaced instance key, and what is left to do."""

    changed: bool
    secrets_encrypted_again: int
    app_tokens_renewed: int
    next: str


@operation("POST", "/admin/secret/rotate")
async def replace_key(context: AdminContext, replacement: KeyReplacement) -> ReplacedKey:
    """Encrypt every secret with `secret_key` instead of `old_secret_key`, while the service runs with both.

    Each process goes on reading values of both keys throughout. An interrupted run continues when it is repeated.

    Raises:
        ApiError: `old_secret_key` is not set here or in another process; a process does not use the new key in time.
    """
    keys = context.instance_keys
    new, *old = context.secret_box.keys
    state = await keys.refresh()
    renewed = 0
    if state.fingerprint == new.fingerprint and not state.rewriting:
        return ReplacedKey(False, 0, 0, "Nothing was left to do.")
    if not old:
        text = "old_secret_key must be set to the key before, in every process, and secret_key to the new one."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="old_secret_key")
    if state.fingerprint != new.fingerprint:
        await _check_processes(context, new)
        until_ms = context.clock.now_ms() + replacement.keep_old_for_s * 1000
        keeps_root = replacement.app_tokens == "keep"
        next_state = context.secret_box.rotated_state(new, keeps_root=keeps_root, old_root_until_ms=until_ms)
        if not keeps_root:  # before the switch: from then on the new tokens are shown, and must be accepted
            renewed += await _renew_app_tokens(context, new, until_ms)
        await keys.change(next_state)
        state = next_state
    await _wait_for_processes(context, new)
    if state.old_root is not None:
        renewed += await _renew_app_tokens(context, new, state.old_root_until_ms)  # of apps added meanwhile
        context.directory.invalidate()
    rewritten = 0
    while count := await keys.rewrite():  # a transaction that began before the switch may end during a turn
        rewritten += count
    await keys.change(replace(state, rewriting=False))
    return ReplacedKey(True, rewritten, renewed, "Remove old_secret_key from the settings of every process.")


async def _check_processes(context: AdminContext, new: InstanceKey) -> None:
    """Check that every running process has the new key."""
    others = await context.instance_keys.other_processes()
    missing = sum(new.fingerprint not in known.split(",") for _, known in others)
    if missing:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"secret_key must be the new key, and old_secret_key the one before, in every process: {missing} of "
            f"{len(others)} running processes do not have the new one. Restart each with both, then run this again.",
            field="secret_key",
        )


async def _wait_for_processes(context: AdminContext, new: InstanceKey) -> None:
    """Return once every running process uses the new key."""

    async def is_used() -> bool:
        return all(in_use == new.fingerprint for in_use, _ in await context.instance_keys.other_processes())

    try:
        async with asyncio.timeout(SWITCH_TIMEOUT_S):
            while not await is_used():  # noqa: ASYNC110  they report in the store
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        text = f"A process does not use the new key after {SWITCH_TIMEOUT_S:g} s. Stop it, then run this again."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="secret_key") from error


async def _renew_app_tokens(context: AdminContext, new: InstanceKey, until_ms: int) -> int:
    """Derive every app's token from the new key, and accept the one before until a time; return how many changed."""

    def new_hash(app: App) -> str:
        return hash_secret(derive_app_token(new.root, app.id, app.token_serial))

    app_ids = [app.id for app in await context.database.read(all_apps)]
    return sum(
        [
            await context.database.write(replace_app_tokens, new_hash, app_ids[start : start + _APPS_AT_ONCE], until_ms)
            for start in range(0, len(app_ids), _APPS_AT_ONCE)
        ]
    )
