"""Apps: their keys, users, usage, and which operator account carried each when."""
