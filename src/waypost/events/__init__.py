"""Stage 5 of 6, events: what the operator says, taken in and applied."""
