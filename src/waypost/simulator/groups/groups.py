"""Creating, changing and deleting groups; phones that join and leave; the webhook about each change."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.errors import message_error
from waypost.simulator.groups.group import (
    APPROVAL_REQUIRED,
    INVITE_LINK_PREFIX,
    MAX_PARTICIPANTS,
    GroupParticipant,
    JoinRequest,
    SimulatedGroup,
    make_group_id,
    make_join_request_id,
    read_approval_mode,
    read_description,
    read_subject,
)
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import add_update

LIFECYCLE: Final = "group_lifecycle_update"
PARTICIPANTS: Final = "group_participants_update"
SETTINGS_UPDATE: Final = "group_settings_update"
"""The webhook fields. Source: the operator's page "Groups"."""


class Groups:
    """Every group of every number; in memory, and written through to the file. Changes run one at a time."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, accounts: Accounts, phones: Phones, outbox: Outbox
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._accounts = accounts
        self._phones = phones
        self._outbox = outbox
        self._changes = asyncio.Lock()
        self._groups = CachedKeyedValues(store, "group", SimulatedGroup)
        self.by_id = self._groups.all
        self._by_code = self._groups.index(lambda group: (group.invite_code,))

    def number_groups(self, phone_number_id: str) -> list[SimulatedGroup]:
        """Return the groups of a number, oldest first."""
        return [group for group in self.by_id.values() if group.phone_number_id == phone_number_id]

    def phone_groups(self, phone: str) -> list[SimulatedGroup]:
        """Return the groups that a phone is in, oldest first."""
        return [group for group in self.by_id.values() if group.find_participant(phone) is not None]

    async def create(self, number: Number, fields: dict[str, Any]) -> str:
        """Create a group without participants; return the id of the request, which the webhook repeats.

        Raises:
            GraphApiError: 100, the subject is missing, or a parameter is invalid.
        """
        subject, description, mode = read_subject(fields), read_description(fields), read_approval_mode(fields)
        request_id = self._request_id()
        async with self._changes:
            group = SimulatedGroup(
                group_id=make_group_id(number.phone_number, self._ids.digits(18)),
                phone_number_id=number.phone_number_id,
                subject=subject,
                description=description,
                invite_code=self._invite_code(),
                created_ms=self._clock.now_ms(),
                join_approval_mode=mode,
            )
            details: dict[str, Any] = {
                "request_id": request_id,
                "subject": subject,
                **({"description": description} if description else {}),
                "invite_link": group.invite_link,
                "join_approval_mode": mode,
            }
            await self._save(group, LIFECYCLE, "group_create", details)
        return request_id

    async def change(self, group: SimulatedGroup, fields: dict[str, Any], picture: dict[str, Any] | None) -> str:
        """Change subject, description or picture; return the id of the request.

        Args:
            group: the group.
            fields: new texts; an absent one stays.
            picture: MIME type and hash of a new picture, as the webhook reports them.

        Raises:
            GraphApiError: 100, a text is invalid.
        """
        changes: dict[str, str] = {}
        if "subject" in fields:
            changes["subject"] = read_subject(fields)
        if "description" in fields:
            changes["description"] = read_description(fields)
        request_id = self._request_id()
        details: dict[str, Any] = {"request_id": request_id}
        details |= {f"group_{name}": {"text": text, "update_successful": True} for name, text in changes.items()}
        if picture is not None:
            details["profile_picture"] = {**picture, "update_successful": True}
        async with self._changes:
            changed = replace(self._known(group), **changes)
            await self._save(changed, SETTINGS_UPDATE, "group_settings_update", details)
        return request_id

    async def delete(self, group: SimulatedGroup) -> str:
        """Delete a group; return the id of the request."""
        request_id = self._request_id()
        async with self._changes:
            group = self._known(group)
            update = self._update(group, LIFECYCLE, "group_delete", {"request_id": request_id})
            await self._groups.delete(group.group_id, also=update)
        self._wake(group)
        return request_id

    async def reset_invite_link(self, group: SimulatedGroup) -> SimulatedGroup:
        """Give a group a new invite link, which invalidates the old one; return the group."""
        async with self._changes:
            changed = replace(self._known(group), invite_code=self._invite_code())
            await self._groups.save(changed, changed.group_id)
        return changed

    async def remove(self, group: SimulatedGroup, phones: Sequence[str]) -> str:
        """Remove participants; return the id of the request.

        Raises:
            GraphApiError: 131202, a phone is named twice; 131212, one is not in the group.
        """
        if len(set(phones)) < len(phones):
            raise message_error(131202, "participants: a participant is named twice")
        request_id = self._request_id()
        async with self._changes:
            group = self._known(group)
            for phone in phones:
                if group.find_participant(phone) is None:
                    raise message_error(131212, f"participants: {phone} is not in the group")
            removed = [{"input": phone, **self._identity(phone)} for phone in phones]
            details = {"request_id": request_id, "initiated_by": "business", "removed_participants": removed}
            await self._save(_remove_phones(group, phones), PARTICIPANTS, "group_participants_remove", details)
        return request_id

    async def join(self, phone: str, invite_link: str) -> SimulatedGroup:
        """Let a phone join by an invite link, or request it; return the group.

        A phone that is in it already stays, and so does its request.

        Raises:
            ControlApiError: 404, no group has the link; 409, the group is full.
        """
        handset, is_new = self._phones.find_or_create(phone)
        new_phone = [self._phones.add_statement(handset.phone)] if is_new else []
        async with self._changes:
            group = self._by_code.get(invite_link.removeprefix(INVITE_LINK_PREFIX))
            if group is None:
                raise ControlApiError("invite_link", "opens no group", "a link of GET /control/groups", status=404)
            if group.find_participant(phone) is not None or group.find_join_request(phone) is not None:
                return group
            if group.join_approval_mode == APPROVAL_REQUIRED:
                request = JoinRequest(make_join_request_id(group.group_id, phone), phone, self._clock.now_ms())
                requested = replace(group, join_requests=(*group.join_requests, request))
                await self._save(
                    requested, PARTICIPANTS, "group_join_request_created", self._request_view(request), also=new_phone
                )
                return requested
            if len(group.participants) >= MAX_PARTICIPANTS:
                rule = f"the group has {MAX_PARTICIPANTS} participants already"
                raise ControlApiError("invite_link", rule, "a group with room", status=409)
            participant = GroupParticipant(phone, self._clock.now_ms())
            joined = replace(group, participants=(*group.participants, participant))
            details = {"reason": "invite_link", "added_participants": [self._identity(phone)]}
            await self._save(joined, PARTICIPANTS, "group_participants_add", details, also=new_phone)
        return joined

    async def leave(self, phone: str, group: SimulatedGroup) -> None:
        """Let a participant leave."""
        async with self._changes:
            group = self._known(group)
            details = {"initiated_by": "participant", "removed_participants": [self._identity(phone)]}
            await self._save(_remove_phones(group, [phone]), PARTICIPANTS, "group_participants_remove", details)

    async def cancel_join_request(self, phone: str, group: SimulatedGroup) -> None:
        """Take back a phone's request to join."""
        async with self._changes:
            group = self._known(group)
            request = group.find_join_request(phone)
            if request is not None:
                changed = _remove_requests(group, [request.request_id])
                await self._save(changed, PARTICIPANTS, "group_join_request_revoked", self._request_view(request))

    async def approve_join_requests(self, group: SimulatedGroup, request_ids: Sequence[str]) -> dict[str, int]:
        """Let the phones of join requests join; return an error code for each that could not."""
        async with self._changes:
            group = self._known(group)
            failed = _find_unknown(group, request_ids)
            known = [request for request in group.join_requests if request.request_id in request_ids]
            room = MAX_PARTICIPANTS - len(group.participants)
            failed |= dict.fromkeys((request.request_id for request in known[room:]), 131204)
            approved = known[:room]
            if approved:
                now_ms = self._clock.now_ms()
                joined = [GroupParticipant(request.phone, now_ms) for request in approved]
                changed = _remove_requests(group, [request.request_id for request in approved])
                changed = replace(changed, participants=(*group.participants, *joined))
                added = [{"input": request.phone, **self._identity(request.phone)} for request in approved]
                details = {"reason": "invite_link", "added_participants": added}
                await self._save(changed, PARTICIPANTS, "group_participants_add", details)
        return failed

    async def reject_join_requests(self, group: SimulatedGroup, request_ids: Sequence[str]) -> dict[str, int]:
        """Reject join requests, without a webhook; return an error code for each that is unknown."""
        async with self._changes:
            group = self._known(group)
            await self._groups.save(_remove_requests(group, request_ids), group.group_id)
        return _find_unknown(group, request_ids)

    def _request_view(self, request: JoinRequest) -> dict[str, Any]:
        """Return what the webhook says about a join request. Source: the operator's page "Groups"."""
        return {"reason": "invite_link", "join_request_id": request.request_id, **self._identity(request.phone)}

    def _known(self, group: SimulatedGroup) -> SimulatedGroup:
        """Return the group as it is now.

        Raises:
            GraphApiError: 131041, it has been deleted meanwhile.
        """
        known = self.by_id.get(group.group_id)
        if known is None:
            raise message_error(131041, "The group was not found")
        return known

    async def _save(
        self, group: SimulatedGroup, field: str, kind: str, details: dict[str, Any], also: Sequence[Statement] = ()
    ) -> None:
        update = self._update(group, field, kind, details)
        await self._groups.save(group, group.group_id, also=[*update, *also])
        self._wake(group)

    def _update(self, group: SimulatedGroup, field: str, kind: str, details: dict[str, Any]) -> list[Statement]:
        """Return the statement that queues the webhook; none if the account has no receiver.

        Source: ledger rows 74 and 75; the operator's page "Groups".
        """
        number = self._accounts.numbers[group.phone_number_id]
        if not self._outbox.has_subscribers(number.waba_id):
            return []
        now_ms = self._clock.now_ms()
        value = {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": number.phone_number, "phone_number_id": number.phone_number_id},
            "groups": [{"timestamp": now_ms // 1000, "group_id": group.group_id, "type": kind, **details}],
        }
        return [add_update(self._outbox.account_update(number.waba_id, now_ms, field, value, subject=group.group_id))]

    def _identity(self, phone: str) -> dict[str, str]:
        handset = self._phones.fill_user_id(self._phones.find_or_default(phone))
        return handset.identity_members("wa_id", "user_id")

    def _wake(self, group: SimulatedGroup) -> None:
        self._outbox.wake_events(self._accounts.numbers[group.phone_number_id].waba_id).set()

    def _request_id(self) -> str:
        return self._ids.new().replace("-", "").upper()

    def _invite_code(self) -> str:
        return self._ids.secret()[:22]


def _remove_phones(group: SimulatedGroup, phones: Sequence[str]) -> SimulatedGroup:
    return replace(group, participants=tuple(item for item in group.participants if item.phone not in phones))


def _remove_requests(group: SimulatedGroup, request_ids: Sequence[str]) -> SimulatedGroup:
    kept = tuple(request for request in group.join_requests if request.request_id not in request_ids)
    return replace(group, join_requests=kept)


def _find_unknown(group: SimulatedGroup, request_ids: Sequence[str]) -> dict[str, int]:
    """Return the error code of each id that no join request has."""
    known = {request.request_id for request in group.join_requests}
    return {request_id: 131213 for request_id in request_ids if request_id not in known}
