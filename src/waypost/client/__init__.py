"""A typed HTTP client of our own APIs, for the command line, tests and other programs."""
