"""The simulator pages: reviews, faults, clock, fleets, snapshots and rules, all through its control API."""
