"""Templates: checked, kept, changed, and what they may be called."""
