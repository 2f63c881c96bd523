"""Stage 1 of 6, api: the endpoints that partners call."""
