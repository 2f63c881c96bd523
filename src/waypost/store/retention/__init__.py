"""Retention of data: personal columns, export and erasure of a person, retention rules, partitions of PostgreSQL."""
