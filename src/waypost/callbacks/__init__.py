"""Stage 6 of 6, callbacks: delivery to the partner, at least once, in order per recipient."""
