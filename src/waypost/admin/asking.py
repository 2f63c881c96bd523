"""Questions to an operator on the administrator's behalf: the answer, or in one sentence why there is none."""

from collections.abc import Mapping
from typing import Any, Final, cast

from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Rejected, Unavailable, Uncertain
from waypost.domain.refusals import Reason, Refused
from waypost.operators.contract import Ask, Operator, Question, Told

MOST_PAGES: Final = 60
"""Of a hundred: as many templates as a business account may have. Source: operator's facts 2.3."""


class NotTold(Exception):
    """The operator refused, or did not answer.

    Attributes:
        code: of the refusal; None where there was no answer.
        text: the operator's words, or what became of the call.
    """

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(text)
        self.code: Final = code
        self.text: Final = text

    def refusal(self) -> Refused:
        """The same as the answer of a door."""
        if self.code is not None:
            return Refused(Reason.OPERATOR_REFUSED, f"The operator refuses: {self.text}")
        return Refused(Reason.OPERATOR_UNAVAILABLE, f"The operator cannot be asked now: {self.text}", retry_after_s=10)


async def ask(
    operator: Operator,
    account: OperatorAccount,
    what: Ask,
    about: str,
    *,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One question, answered within ten seconds.

    Raises:
        NotTold: there is no answer.
    """
    match await operator.ask(account, Question(what, about, query or {}, body)):
        case Told(body=told):
            return told
        case Rejected(code=code, text=text, operator_code=own):
            raise NotTold(code if own is None else own, text)
        case Unavailable(code=code, text=text):
            raise NotTold(code or None, text)
        case Uncertain(text=text):
            raise NotTold(None, text)


async def ask_list(
    operator: Operator, account: OperatorAccount, what: Ask, about: str, *, query: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Every page of a list; what is no object in it is left out.

    Raises:
        NotTold: a page did not come, or there is no last one.
    """
    nodes: list[dict[str, Any]] = []
    wish = {**(query or {}), "limit": "100"}
    for _ in range(MOST_PAGES):
        told = await ask(operator, account, what, about, query=wish)
        listed = cast(list[Any], told.get("data") or [])
        nodes += [cast(dict[str, Any], one) for one in listed if isinstance(one, dict)]
        match told.get("paging"):
            case {"next": str(), "cursors": {"after": str(after)}}:
                wish = wish | {"after": after}
            case _:
                return nodes
    raise NotTold(None, f"its list of {what.value} has no end")
