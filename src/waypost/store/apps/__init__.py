"""Apps: their keys, users, usage and operator history."""
