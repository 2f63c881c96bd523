"""What an adapter gives, and what it must say about itself."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from waypost.domain.app import App, OperatorAccount
from waypost.domain.arrival import ArrivalItem
from waypost.domain.event import Event
from waypost.domain.message import Message
from waypost.domain.outcome import Outcome
from waypost.domain.template import Template


class Operator(Protocol):
    """Carries submissions to the operator, and reads what the operator says.

    No method raises for what the operator does; that is an outcome. All are safe to call side by side.
    """

    async def send(
        self,
        account: OperatorAccount,
        app: App,
        message: Message,
        *,
        template: Template | None,
        reply_to: str | None,
    ) -> Outcome:
        """Hand one message to the operator and say what became of it.

        Args:
            account: credentials and address.
            app: whose number sends.
            message: what to send.
            template: of a template message.
            reply_to: the operator's id of the message it answers.
        """
        ...

    async def submit_template(self, account: OperatorAccount, template: Template) -> Outcome:
        """Hand in a template for review. Handing in the same one again is harmless."""
        ...

    def answer_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        """What a correct webhook handshake is answered with; None for a wrong one."""
        ...

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the operator signed exactly these bytes."""
        ...

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[ArrivalItem]:
        """The single items of a webhook body; what cannot be split is one item."""
        ...

    def read(self, item: bytes) -> Event:
        """What one item says, in our words."""
        ...
