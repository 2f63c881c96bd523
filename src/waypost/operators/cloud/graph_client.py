"""Requests of the Graph API whose responses a partner gets."""

import io
from typing import Any, Final

from waypost.base.http.request_bodies import FormPart
from waypost.base.json_values import object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls.call import CallFailure
from waypost.domain.outcome import OperatorAccepted
from waypost.operators.cloud.error_codes import name_conflict
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.paging import whole_list
from waypost.operators.cloud.rate_usage import CallCategory
from waypost.operators.contract import GraphRequest

OPERATOR_CALL_TIMEOUT_S: Final = 10
"""Of each request of a direct call. Source: decision 0026."""


class CloudGraphClient:
    """The Graph API of the operator."""

    def __init__(self, calls: CloudHttpClient) -> None:
        self._calls = calls

    async def request(self, account: OperatorAccount, request: GraphRequest) -> dict[str, Any] | CallFailure:
        """Make one request; return the object of its response."""
        form = None if request.files is None else _form_parts(request)
        response = await self._calls(
            account,
            request.method,
            request.path,
            None if request.body is None or form is not None else dict(request.body),
            None if request.query is None else dict(request.query),
            form=form,
            timeout_s=OPERATOR_CALL_TIMEOUT_S,
            category=CallCategory.MESSAGES if request.is_message else CallCategory.MANAGEMENT,
            business=request.business,
        )
        match response:
            case {"error": error}:  # the name exists: every other error is an outcome already
                return name_conflict(object_of(error))
            case OperatorAccepted():
                raise AssertionError("a call has no message to send")
            case _:
                return response

    async def list_all(self, account: OperatorAccount, request: GraphRequest, name: str) -> list[Any] | CallFailure:
        """Return the items of all pages; `name` is what the text of a failure calls them."""
        items = await whole_list(
            self._calls,
            account,
            request.path,
            dict(request.query or {}),
            name=name,
            business=request.business,
            timeout_s=OPERATOR_CALL_TIMEOUT_S,
        )
        match items:
            case OperatorAccepted():
                raise AssertionError("a list has no message to send")
            case _:
                return items


def _form_parts(request: GraphRequest) -> list[FormPart]:
    texts = [FormPart(name, str(text)) for name, text in (request.body or {}).items()]
    files = [
        FormPart(name, io.BytesIO(file.content), file.name, file.mime_type)
        for name, file in (request.files or {}).items()
    ]
    return texts + files
