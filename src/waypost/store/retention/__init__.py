"""Retention rules, and the partitions of PostgreSQL."""
