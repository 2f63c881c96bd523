"""Stage 6 of 6, callbacks: telling the partner, at least once, in order per recipient."""
