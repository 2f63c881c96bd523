"""Template messages: checked against their template, and rendered."""
