"""New numbers, and in-app signups."""
