"""The simulator's file with its tables, values by key and settings."""
