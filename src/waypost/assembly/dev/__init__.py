"""`waypost dev`: service and simulator in one process, with the data of a demonstration."""
