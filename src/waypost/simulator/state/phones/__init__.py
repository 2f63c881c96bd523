"""The state of phones: identity, conditions, blocks, fleets, and the plans of their scripts."""
