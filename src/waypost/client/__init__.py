"""A typed HTTP client of our own doors: the command line uses it, and so may tests and other programs."""
