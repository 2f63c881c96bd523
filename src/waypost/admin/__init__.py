"""A door for the command line, for tests and for the console's settings."""
