"""`make crash`: real processes, real faults in the middle of a load, and what came of every message, counted from outside."""
