"""Payment configurations of a business account; looking payments up and refunding them."""
