"""The Graph side: what the operator's documentation promises to a client, route by route."""
