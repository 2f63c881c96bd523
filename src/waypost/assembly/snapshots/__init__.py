"""Snapshots: the state of service and simulator as one file."""
