"""Groups of a business number: their settings, invite links and participants, and the webhooks about them."""
