"""Additional credentials of an app, by hash."""

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from waypost.domain.app import MAX_ENDED_TOKENS, AppKey, KeyStatus
from waypost.store.sql import RowReader, read_all, read_one, row_values
from waypost.store.tables import app_keys

_read_app_key: Final = RowReader(AppKey)


class DuplicateKeyName(Exception):
    """The app has an active token of this name."""


class LastKey(Exception):
    """The app has no other active additional key."""


class TooManyKeys(Exception):
    """The app has as many of these credentials as it may."""


def add_app_key(connection: Connection, key: AppKey, key_hash: str, *, max_keys: int, now_ms: int) -> AppKey:
    """Store a credential's hash, and return the credential.

    Args:
        key: with an expiry, a minted token; without, an additional key. Without a name it gets one.
        max_keys: how many of its kind may be active.

    Raises:
        DuplicateKeyName: an active one of its kind has its name.
        TooManyKeys: the maximum is reached.
    """
    others = list_app_keys(connection, key.app_id, minted=key.expires_on_ms is not None)
    active = [other for other in others if other.status(now_ms) is KeyStatus.ACTIVE]
    names = {other.name for other in active}
    if len(active) >= max_keys:
        raise TooManyKeys(key.app_id)
    if key.name in names:
        raise DuplicateKeyName(key.name)
    ended = [other.id for other in others if other.status(now_ms) is not KeyStatus.ACTIVE]
    if len(ended) > MAX_ENDED_TOKENS:
        connection.execute(delete(app_keys).where(app_keys.c.id.in_(ended[:-MAX_ENDED_TOKENS])))
    if not key.name:
        free = ("key", *(f"key {number}" for number in range(2, max_keys + 2)))
        key = replace(key, name=next(name for name in free if name not in names))
    connection.execute(insert(app_keys), row_values(app_keys, key, hash=key_hash))
    return key


def list_app_keys(connection: Connection, app_id: str, *, minted: bool) -> list[AppKey]:
    """Return an app's minted tokens or its additional keys, oldest first; the revoked and the expired too."""
    of_kind = select(app_keys).where(app_keys.c.app_id == app_id, _is_minted(minted))
    return read_all(connection, of_kind.order_by(app_keys.c.id), _read_app_key)


def app_key_by_hash(connection: Connection, key_hash: str) -> AppKey | None:
    """Return the credential with this hash, or None; the caller checks its status."""
    return read_one(connection, select(app_keys).where(app_keys.c.hash == key_hash), _read_app_key)


def revoke_app_key(connection: Connection, app_id: str, key_id: str, now_ms: int, *, minted: bool) -> AppKey | None:
    """Revoke one of an app's credentials if it is active; return it as it was before, or None if there is none."""
    chosen = (app_keys.c.app_id == app_id) & (app_keys.c.id == key_id) & _is_minted(minted)
    key = read_one(connection, select(app_keys).where(chosen), _read_app_key)
    if key is not None and key.status(now_ms) is KeyStatus.ACTIVE:
        connection.execute(update(app_keys).where(chosen).values(revoked_on_ms=now_ms))
    return key


def revoke_minted_tokens(connection: Connection, app_id: str, now_ms: int) -> int:
    """Revoke every active minted token of an app; return how many they were."""
    is_active = app_keys.c.revoked_on_ms.is_(None) & (app_keys.c.expires_on_ms > now_ms)
    chosen = update(app_keys).where(app_keys.c.app_id == app_id, is_active)
    return connection.execute(chosen.values(revoked_on_ms=now_ms)).rowcount


def revoke_additional_key(connection: Connection, app_id: str, key_hash: str, now_ms: int) -> list[AppKey] | None:
    """Revoke the app's additional key with this hash and return those that stay active; None if there is no such key.

    Raises:
        LastKey: it is the only one.
    """
    keys = [key for key in list_app_keys(connection, app_id, minted=False) if key.status(now_ms) is KeyStatus.ACTIVE]
    key = app_key_by_hash(connection, key_hash)
    if key is None or key.id not in {other.id for other in keys}:
        return None
    others = [other for other in keys if other.id != key.id]
    if not others:
        raise LastKey(app_id)
    revoke_app_key(connection, app_id, key.id, now_ms, minted=False)
    return others


def _is_minted(minted: bool) -> Any:
    column = app_keys.c.expires_on_ms
    return column.is_not(None) if minted else column.is_(None)
