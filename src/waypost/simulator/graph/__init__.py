"""Graph API: the operator's documented calls, route by route."""
