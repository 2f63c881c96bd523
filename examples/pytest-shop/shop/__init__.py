"""A shop that confirms its orders by message."""
