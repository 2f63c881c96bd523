"""Database engines, one module each; `assembly` chooses one."""
