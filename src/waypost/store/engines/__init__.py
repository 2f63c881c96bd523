"""One module per database engine; `assembly` chooses."""
