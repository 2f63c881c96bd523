"""Callback bodies for the state changes of messages, in either version."""

from typing import NamedTuple

from waypost.domain.app import App
from waypost.domain.event import StatusEvent
from waypost.domain.message import MessageKind, MessageState
from waypost.domain.phone_number import parse_group_id
from waypost.store.encoding import TEMPLATE_MESSAGE_KINDS
from waypost.store.messages.messages import MessageRow
from waypost.wire.callbacks import callback_v2, callback_v3


class MessageEventBody(NamedTuple):
    """The body of one message event, rendered when a subscription includes it.

    Attributes:
        row: of the message.
        event: the operator's status; None where dispatch emits the event.
    """

    app: App
    at_ms: int
    row: MessageRow
    state: MessageState
    operator_message_id: str | None
    event: StatusEvent | None
    code: int | None
    reason: str | None

    def __call__(self, version: int) -> bytes | None:
        """Return the body in a version; None where that version has none."""
        match self.state:
            case _ if version == 2 and self._is_group_event:
                return None
            case MessageState.ENQUEUED:
                return self._enqueued_body(version)
            case MessageState.FAILED if self.event is None or version == 2:
                return self._failed_body(version)
            case _ if self.event is None:
                return None
            case _ if version == 2:
                return callback_v2.status_body(
                    self.app, self.at_ms, self.event, message_id=self.row.id, destination=self.row.destination
                )
            case _:
                return callback_v3.status_body(self.app, self.event, message_id=self.row.id)

    @property
    def _is_group_event(self) -> bool:
        """True if this is the operator's event of a group's message, which has no shape in version 2."""
        event = self.event
        return event is not None and event.is_of_group and self.state is event.state

    @property
    def _bare_destination(self) -> str:
        return parse_group_id(self.row.destination) or self.row.destination

    def _enqueued_body(self, version: int) -> bytes:
        if version == 2:
            of_template = self.row.kind in TEMPLATE_MESSAGE_KINDS
            return callback_v2.enqueued_body(
                self.app,
                self.at_ms,
                message_id=self.row.id,
                operator_message_id=self.operator_message_id or "",
                kind=MessageKind.TEMPLATE if of_template else MessageKind.SESSION,
                destination=self._bare_destination,
            )
        return callback_v3.enqueued_body(
            self.app,
            self.at_ms,
            message_id=self.row.id,
            operator_message_id=self.operator_message_id,
            destination=self.row.destination,
        )

    def _failed_body(self, version: int) -> bytes:
        body = callback_v2.failed_body if version == 2 else callback_v3.failed_body
        return body(
            self.app,
            self.at_ms,
            message_id=self.row.id,
            operator_message_id=self.operator_message_id,
            destination=self._bare_destination if version == 2 else self.row.destination,
            code=self.code or 0,
            reason=self.reason or "",
        )
