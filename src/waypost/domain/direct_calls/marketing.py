"""Direct calls about the operator's API for marketing messages."""

from dataclasses import dataclass

from waypost.domain.direct_calls.call import OperatorCall, RawList


@dataclass(frozen=True, slots=True)
class GetMarketingTerms(OperatorCall[str]):
    """Get the URL of the page where the owner of a business account accepts the terms for marketing messages.

    Attributes:
        language: of the page, such as `pt_BR`; empty: the reader's own.
    """

    business_account_id: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class GetTemplateInsights(OperatorCall[RawList]):
    """Get the statistics of a marketing template; empty if the operator has none.

    Attributes:
        template_id: the operator's.
        date_preset: the operator's name of the period.
        fields: the operator's names of the statistics.
    """

    template_id: str
    date_preset: str
    fields: tuple[str, ...]
