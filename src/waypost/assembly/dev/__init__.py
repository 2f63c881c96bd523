"""`waypost dev`: service and simulator in one process, with demonstration data."""
