"""Alembic revisions of the store, one module each; a released revision never changes."""
