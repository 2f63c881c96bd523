"""What is true: partners, apps, templates, messages, and the tables that govern them. Plain Python, no I/O."""
