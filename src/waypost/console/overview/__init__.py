"""The page that shows what is happening now."""
