"""Partners with their credentials, console sessions, and the audit log."""
