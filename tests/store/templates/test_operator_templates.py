"""Templates by the operator's id: each partner finds its own."""

from sqlalchemy import Connection

from tests.support.builders import ACCOUNT, AT_MS, PARTNER, template
from waypost.domain.templates.template import TemplateStatus
from waypost.store.accounts.partners import add_business_account, add_partner
from waypost.store.database import Database
from waypost.store.templates.templates import TemplateLink, adopt_template, template_links


async def test_links_are_of_the_partner_s_templates_that_are_there(database: Database) -> None:
    one = template(1, operator_template_id="71")
    gone = template(2, operator_template_id="72", status=TemplateStatus.DELETED)

    def keep(connection: Connection) -> None:
        add_partner(connection, PARTNER, "no password", AT_MS)
        add_business_account(connection, ACCOUNT)
        adopt_template(connection, one)
        adopt_template(connection, gone)

    await database.write(keep)

    async def links(partner_id: int, *ids: str) -> list[TemplateLink]:
        return await database.read(template_links, partner_id, ids)

    assert await links(PARTNER.id, "71", "72", "73") == [TemplateLink("71", one.business_account_id, one.id)]
    assert await links(PARTNER.id + 1, "71") == []
    assert await links(PARTNER.id) == []
