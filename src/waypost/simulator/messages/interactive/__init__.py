"""Interactive messages: kinds, carousel cards, orders."""
