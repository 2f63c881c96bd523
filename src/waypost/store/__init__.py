"""What is remembered: one implementation, on SQLAlchemy Core, for every engine."""
