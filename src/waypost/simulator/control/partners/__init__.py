"""Control API calls for partners of tests: one for each test, its messages and its callbacks."""
