"""Templates: checks, storage, changes, names and the library."""
