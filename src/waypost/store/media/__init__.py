"""Media: rows, files, and the folder that processes share."""
