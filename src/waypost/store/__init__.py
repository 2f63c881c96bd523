"""The store: tables and statements on SQLAlchemy Core, one implementation for every engine."""
