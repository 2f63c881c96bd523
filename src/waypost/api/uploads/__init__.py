"""Files that partners upload: written to disk, recognised by their bytes, counted against a quota."""
