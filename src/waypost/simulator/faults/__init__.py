"""Faults as data: what they are, and which are armed."""
