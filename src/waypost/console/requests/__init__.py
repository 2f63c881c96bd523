"""The request log: failed requests of partners and a sample of the others, with the reason and what would be accepted."""
