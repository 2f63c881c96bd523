"""Direct calls about templates, and about the operator's library of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from waypost.domain.direct_calls.call import CallResult, OperatorCall, RawList
from waypost.domain.templates.fields import TemplateDraft


class TemplateDetail(StrEnum):
    """The fields of each template in a list: id, name, language and status, or more."""

    STATUS = "status"
    REVIEW = "category, quality and reason of a rejection too"
    CONTENTS = "contents, category, quality and reason of a rejection too"
    TEXTS = "body and footer too"


@dataclass(frozen=True, slots=True)
class OperatorTemplate:
    """A template as the operator has it.

    Attributes:
        language: with an underscore or a hyphen.
        status: the operator's name of it in upper case, such as APPROVED.
        is_being_deleted: true if it is deleted or about to be.
        category: as in `Category`; empty: not given.
        quality: GREEN, YELLOW, RED or UNKNOWN; empty: not given.
        body: its text; None: not given, or it has none.
        draft: its contents as a draft of ours; None: not given.
        is_generated: true if the operator's Direct Send has generated it.
    """

    id: str
    name: str
    language: str
    status: str
    is_being_deleted: bool = False
    category: str = ""
    rejected_reason: str | None = None
    quality: str = ""
    body: str | None = None
    footer: str | None = None
    draft: TemplateDraft | None = None
    is_generated: bool = False


@dataclass(frozen=True, slots=True)
class ListTemplates(OperatorCall[Sequence[OperatorTemplate]]):
    """List all templates of a business account, or those of one name; an incomplete list is `OperatorUnavailable`."""

    business_account_id: str
    detail: TemplateDetail
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GetTemplate(OperatorCall[OperatorTemplate]):
    """Get one template."""

    template_id: str


@dataclass(frozen=True, slots=True)
class UnpauseTemplate(OperatorCall[CallResult]):
    """End the operator's pause of a template."""

    template_id: str


@dataclass(frozen=True, slots=True)
class LibraryTemplateButton:
    """A button of a library template; `kind` in upper case, as in `ButtonKind`."""

    kind: str
    text: str = ""
    url: str = ""
    phone_number: str = ""


@dataclass(frozen=True, slots=True)
class LibraryTemplate:
    """A template of the operator's library; `examples` are the values of its body's variables."""

    body: str
    examples: Sequence[str] = ()
    header: str = ""
    topic: str = ""
    buttons: Sequence[LibraryTemplateButton] = ()


@dataclass(frozen=True, slots=True)
class ListLibrary(OperatorCall[RawList]):
    """List the templates of the operator's library; an empty filter is ignored."""

    name: str = ""
    industry: str = ""
    language: str = ""
    topic: str = ""
    usecase: str = ""


@dataclass(frozen=True, slots=True)
class GetLibraryTemplate(OperatorCall[LibraryTemplate | None]):
    """Get one library template; None: the library has none of this name in this language."""

    name: str
    language: str


@dataclass(frozen=True, slots=True)
class CreatedTemplate:
    """A template that the operator has created; `status` is its value in upper case."""

    id: str
    status: str = ""


@dataclass(frozen=True, slots=True)
class CreateFromLibrary(OperatorCall[CreatedTemplate]):
    """Create a template from a library template; `button_inputs` are sent as the partner gave them."""

    business_account_id: str
    name: str
    language: str
    category: str
    library_name: str
    button_inputs: Sequence[Mapping[str, Any]] = ()
