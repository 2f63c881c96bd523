"""A typed HTTP client of our own APIs, for the command line and the console."""
