"""Direct calls about flows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from waypost.domain.direct_calls.call import CallResult, OperatorCall, RawList, RawObject


@dataclass(frozen=True, slots=True)
class CreatedFlow:
    """A flow that the operator has created; the errors are for the partner."""

    id: str
    validation_errors: Any = ()


@dataclass(frozen=True, slots=True)
class CreateFlow(OperatorCall[CreatedFlow]):
    """Create a draft of a flow; an empty text is not sent."""

    business_account_id: str
    name: str
    categories: Sequence[str]
    clone_flow_id: str = ""
    endpoint_uri: str = ""
    flow_json: str = ""


@dataclass(frozen=True, slots=True)
class FindDraftFlow(OperatorCall[CreatedFlow | None]):
    """Find the draft with this name and these categories; None: there is none."""

    business_account_id: str
    name: str
    categories: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListFlows(OperatorCall[RawList]):
    """List the flows of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class GetFlow(OperatorCall[RawObject]):
    """Get fields of one flow, by the names of the partner API."""

    flow_id: str
    fields: Sequence[str]


@dataclass(frozen=True, slots=True)
class GetFlowOwner(OperatorCall[str]):
    """Get the id of the business account that a flow belongs to; empty: not given."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class ChangeFlow(OperatorCall[CallResult]):
    """Change a draft; fields that are empty or None stay unchanged."""

    flow_id: str
    name: str | None = None
    categories: Sequence[str] | None = None
    clone_flow_id: str = ""
    endpoint_uri: str = ""
    flow_json: str = ""


@dataclass(frozen=True, slots=True)
class DeleteFlow(OperatorCall[CallResult]):
    """Delete a draft."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class PublishFlow(OperatorCall[CallResult]):
    """Publish a draft."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class DeprecateFlow(OperatorCall[CallResult]):
    """Deprecate a published flow."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class ListFlowAssets(OperatorCall[RawList]):
    """List the files of a flow."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class FlowAssetsResult:
    """The result of setting a flow's file; the errors are for the partner."""

    success: bool
    validation_errors: Any = ()


@dataclass(frozen=True, slots=True)
class PutFlowAssets(OperatorCall[FlowAssetsResult]):
    """Set the JSON of a draft."""

    flow_id: str
    file_name: str
    mime_type: str
    content: bytes
