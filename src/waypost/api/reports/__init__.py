"""Reports on what the store has: the log of a message's events, and the deliveries of a subscription."""
