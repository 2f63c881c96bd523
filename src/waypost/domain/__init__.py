"""The domain model: partners, apps, templates, messages, and the tables of their rules. Plain Python, no I/O."""
