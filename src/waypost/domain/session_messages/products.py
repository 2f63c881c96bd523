"""Session messages about products."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from waypost.domain.coercion import Text, coerce_text
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.session_messages.content import (
    Body,
    FieldLimit,
    HeaderObject,
    ProductSection,
    SendContext,
    SessionContent,
    TextObject,
    interactive_body,
    missing_member,
    product_section_body,
    text_header,
    unwrap_text,
)


@dataclass(slots=True)
class ProductObject:
    """One product of a section."""

    productId: Text | None = None  # noqa: N815
    product_retailer_id: Text | None = None


@dataclass(slots=True)
class ProductSectionObject:
    """A section of a product list."""

    title: Text | None = None
    productList: list[Text | ProductObject] | None = None  # noqa: N815


@dataclass(slots=True)
class ProductsShape:
    """Members of a message about products."""

    subType: str | None = None  # noqa: N815
    sub_type: str | None = None
    catalogId: Text | None = None  # noqa: N815
    productId: Text | None = None  # noqa: N815
    header: Text | HeaderObject | None = None
    body: Text | TextObject | None = None
    footer: Text | TextObject | None = None
    sections: list[ProductSectionObject] | None = None
    thumbnailId: Text | None = None  # noqa: N815


# fmt: off
_REQUIRED_MEMBERS: Final = {  # required members of each kind of product message; Source: facts 9.1, `product_details`
    "product":         (("catalog_id", "catalogId"), ("product_id", "productId")),
    "product_list":    (("catalog_id", "catalogId"), ("body", "body.text"), ("sections", "sections")),
    "catalog_message": (("body", "body.text"),),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class SessionProducts(SessionContent):
    """A message about one product, a list of products, or the catalogue.

    Attributes:
        sub_type: `product`, `product_list` or `catalog_message`.

    Source: facts 9.1, `product_details`.
    """

    wire_types: ClassVar = ("product_details",)
    stored_as: ClassVar = "products"
    kind_label: ClassVar = "Products"
    shape: ClassVar = ProductsShape
    # fmt: off
    limits: ClassVar = (
        FieldLimit("header.text",          lambda c: [c.header],                                60),
        FieldLimit("body.text",            lambda c: [c.body],                                  1024),
        FieldLimit("footer.text",          lambda c: [c.footer],                                60),
        FieldLimit("sections",             lambda c: [c.sections],                              10),
        FieldLimit("sections.title",       lambda c: [section.title for section in c.sections], 24),
        FieldLimit("sections.productList", lambda c: [all_products(c.sections)],                30),
    )
    # fmt: on

    sub_type: str
    catalog_id: str = ""
    product_id: str = ""
    header: str = ""
    body: str = ""
    footer: str = ""
    sections: tuple[ProductSection, ...] = ()
    thumbnail_id: str = ""
    reply_to: str | None = None

    @classmethod
    def read(cls, members: ProductsShape, wire_type: str, reply_to: str | None) -> "SessionProducts":
        sub_type = (members.subType or members.sub_type or "").strip().lower()
        needed = _REQUIRED_MEMBERS.get(sub_type)
        if needed is None:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"message.subType must be one of {', '.join(_REQUIRED_MEMBERS)}.")
        products = cls(
            sub_type,
            catalog_id=coerce_text(members.catalogId),
            product_id=coerce_text(members.productId),
            header=unwrap_text(members.header),
            body=unwrap_text(members.body),
            footer=unwrap_text(members.footer),
            sections=tuple(
                ProductSection(coerce_text(section.title), tuple(map(_product_id, section.productList or [])))
                for section in members.sections or []
            ),
            thumbnail_id=coerce_text(members.thumbnailId),
            reply_to=reply_to,
        )
        for field, name in needed:
            value: object = getattr(products, field)
            if not (value.strip() if isinstance(value, str) else value):
                raise missing_member(name, f"a message of subType {sub_type} has it")
        return products

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        action: Body
        match self.sub_type:
            case "product":
                action = {"catalog_id": self.catalog_id, "product_retailer_id": self.product_id}
            case "product_list":
                sections = [product_section_body(section) for section in self.sections]
                action = {"catalog_id": self.catalog_id, "sections": sections}
            case _:
                action = {"name": "catalog_message"}
                if self.thumbnail_id:
                    action["parameters"] = {"thumbnail_product_retailer_id": self.thumbnail_id}
        header = text_header(self.header) if self.sub_type == "product_list" else None
        return interactive_body(self.sub_type, action, header, self.body, self.footer)


def all_products(sections: Iterable[ProductSection]) -> tuple[object, ...]:
    """Return the products of all sections."""
    return tuple(product for section in sections for product in section.product_ids)


def _product_id(product: Text | ProductObject) -> str:
    if isinstance(product, ProductObject):
        return coerce_text(product.productId or product.product_retailer_id)
    return coerce_text(product)
