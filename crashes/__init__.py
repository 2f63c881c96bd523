"""`make crash`: real processes, real faults under load, and the outcome of every message, counted from outside."""
