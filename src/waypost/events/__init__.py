"""Stage 5 of 6, events: inbound webhooks, verified, stored and applied."""
