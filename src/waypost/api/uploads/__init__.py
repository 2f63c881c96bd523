"""Files that partners upload: stored on disk, typed by their bytes, counted against a quota."""
