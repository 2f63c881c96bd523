"""A shop that confirms its orders on a messenger."""
