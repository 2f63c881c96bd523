"""Bodies of callbacks in versions 2 and 3, their kinds, and their signatures."""
