"""Direct Send: business-initiated messages with a category in place of a template, and the templates generated for them."""
