"""Stage 2 of 6, journal: and every other hand-off. An entry outlives whoever works it."""
