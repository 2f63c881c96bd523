"""Direct calls about media."""

from dataclasses import dataclass

from waypost.domain.direct_calls.call import CallResult, OperatorCall


@dataclass(frozen=True, slots=True)
class OperatorMedium:
    """A medium that is stored at the operator."""

    mime_type: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class GetMedium(OperatorCall[OperatorMedium]):
    """Get a medium of one number."""

    medium_id: str
    number_id: str


@dataclass(frozen=True, slots=True)
class DeleteMedium(OperatorCall[CallResult]):
    """Delete a medium of one number."""

    medium_id: str
    number_id: str
