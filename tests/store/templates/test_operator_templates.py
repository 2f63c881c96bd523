"""Templates by the operator's id: each partner finds its own."""

from sqlalchemy import Connection

from tests.support.builders import ACCOUNT, AT_MS, PARTNER, template
from waypost.domain.templates.template import TemplateStatus
from waypost.store.accounts.partners import add_business_account, add_partner
from waypost.store.database import Database
from waypost.store.templates.templates import TemplateLink, adopt_template, template_links


async def test_links_name_only_the_partners_existing_templates(database: Database) -> None:
    existing = template(1, operator_template_id="71")
    deleted = template(2, operator_template_id="72", status=TemplateStatus.DELETED)

    def add_templates(connection: Connection) -> None:
        add_partner(connection, PARTNER, "no password", AT_MS)
        add_business_account(connection, ACCOUNT)
        adopt_template(connection, existing)
        adopt_template(connection, deleted)

    await database.write(add_templates)

    async def links(partner_id: int, *ids: str) -> list[TemplateLink]:
        return await database.read(template_links, partner_id, ids)

    assert await links(PARTNER.id, "71", "72", "73") == [TemplateLink("71", existing.business_account_id, existing.id)]
    assert await links(PARTNER.id + 1, "71") == []
    assert await links(PARTNER.id) == []
