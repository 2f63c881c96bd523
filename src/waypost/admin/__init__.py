"""The admin API, for the command line, tests and the console's settings."""
