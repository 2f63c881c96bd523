"""Template messages: checked against their template, and filled in."""
