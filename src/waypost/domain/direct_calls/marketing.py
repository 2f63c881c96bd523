"""Direct calls about the operator's API for marketing messages."""

from dataclasses import dataclass

from waypost.domain.direct_calls.call import OperatorCall


@dataclass(frozen=True, slots=True)
class GetMarketingTerms(OperatorCall[str]):
    """Get the URL of the page where the owner of a business account accepts the terms for marketing messages.

    Attributes:
        language: of the page, such as `pt_BR`; empty: the reader's own.
    """

    business_account_id: str
    language: str = ""
