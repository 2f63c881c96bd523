"""Connections to PostgreSQL: how many a process opens, and how many the server allows."""
