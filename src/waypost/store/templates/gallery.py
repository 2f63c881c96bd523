"""Templates as people look for them: a page of a business account's, by what they are, their name or their words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, select

from waypost.domain.templates.fields import Draft
from waypost.domain.templates.rendering import flattened
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.store.encoding import template_of
from waypost.store.tables import templates

_BATCH: Final = 500
_ESCAPED: Final = ('"', "\\", "\n", "\t")
"""What JSON writes otherwise than it is; another control character is not typed into a search."""


@dataclass(frozen=True, slots=True)
class Sought:
    """Which templates; what is empty does not matter.

    Attributes:
        words: in the name or in any text, in whatever case.
    """

    status: str = ""
    category: str = ""
    template_type: str = ""
    language_code: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Shelf:
    """One page.

    Attributes:
        count: of all that are sought.
        languages: of the whole business account, for whoever wants to choose one.
    """

    templates: list[Template]
    count: int
    languages: list[str]


def shelf(
    connection: Connection, partner_id: int, business_account_id: str, sought: Sought, *, at_most: int, skipped: int = 0
) -> Shelf:
    """A page of a business account's templates, newest first; deleted ones never.

    What a text says is made from the draft, so words are looked for here and not by the store; an
    account has some thousands of templates at most.
    """
    there = [
        templates.c.business_account_id == business_account_id,
        templates.c.partner_id == partner_id,
        templates.c.status != TemplateStatus.DELETED.value,
    ]
    codes = select(templates.c.language_code).where(*there).distinct()
    languages = sorted(connection.execute(codes).scalars())
    among = [*there, *_claims(sought)]
    newest = select(templates).where(*among).order_by(templates.c.id.desc())
    if sought.words:
        found = list(_saying(connection, newest, sought.words))
        return Shelf(found[skipped : skipped + at_most], len(found), languages)
    page = connection.execute(newest.limit(at_most).offset(skipped or None))
    shown = [template_of(row) for row in page]
    count: int = connection.execute(select(func.count()).where(*among)).scalar_one()
    return Shelf(shown, count, languages)


def names_on_shelf(
    connection: Connection, partner_id: int, business_account_id: str, at_most: int
) -> list[tuple[str, str, str]]:
    """`(id, name, language)` of a business account's templates, newest first; deleted ones never."""
    found = connection.execute(
        select(templates.c.id, templates.c.element_name, templates.c.language_code)
        .where(
            templates.c.business_account_id == business_account_id,
            templates.c.partner_id == partner_id,
            templates.c.status != TemplateStatus.DELETED.value,
        )
        .order_by(templates.c.id.desc())
        .limit(at_most)
    )
    return [(row.id, row.element_name, row.language_code) for row in found]


def template_of_account(
    connection: Connection, partner_id: int, business_account_id: str, template_id: str
) -> Template | None:
    """One template of a partner's business account, a deleted one too."""
    row = connection.execute(
        select(templates).where(
            templates.c.id == template_id,
            templates.c.partner_id == partner_id,
            templates.c.business_account_id == business_account_id,
        )
    ).one_or_none()
    return None if row is None else template_of(row)


def templates_now(connection: Connection, partner_id: int, business_account_id: str, ids: list[str]) -> list[Template]:
    """Templates of a partner's business account as they are now, by id."""
    rows = connection.execute(
        select(templates).where(
            templates.c.id.in_(ids),
            templates.c.partner_id == partner_id,
            templates.c.business_account_id == business_account_id,
        )
    )
    return [template_of(row) for row in rows]


def newest_id(connection: Connection, partner_id: int, business_account_id: str) -> str:
    """The id of the newest template that there is; empty: there is none."""
    newest = select(func.max(templates.c.id)).where(
        templates.c.business_account_id == business_account_id,
        templates.c.partner_id == partner_id,
        templates.c.status != TemplateStatus.DELETED.value,
    )
    return connection.execute(newest).scalar_one() or ""


def _claims(sought: Sought) -> list[ColumnElement[bool]]:
    exactly = (
        (templates.c.status, sought.status),
        (templates.c.category, sought.category),
        (templates.c.template_type, sought.template_type),
        (templates.c.language_code, sought.language_code),
    )
    return [column == value for column, value in exactly if value]


def _saying(connection: Connection, found: Select[Any], words: str) -> Iterator[Template]:
    """Those whose name or texts hold the words; most others are told by their bytes alone."""
    wanted = words.casefold()
    at = 0
    while True:
        rows = connection.execute(found.limit(_BATCH).offset(at or None)).all()
        for row in rows:
            if _may_say(row.category, row.draft, wanted):
                template = template_of(row)
                if wanted in f"{row.element_name}\n{_texts(template.draft)}".casefold():
                    yield template
        if len(rows) < _BATCH:
            return
        at += _BATCH


def _may_say(category: str, draft: bytes, wanted: str) -> bool:
    """Whether the texts may hold the words: of codes they are the operator's, and not in the draft."""
    if category == Category.AUTHENTICATION or any(one in wanted for one in _ESCAPED):
        return True
    return wanted in draft.decode().casefold()


def _texts(draft: Draft) -> str:
    cards = [card.body or "" for card in draft.cards or ()]
    labels = [button.text for card in draft.cards or () for button in card.buttons]
    return "\n".join([flattened(draft), *cards, *labels])
