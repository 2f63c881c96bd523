"""The simulator as a whole: what opens and closes it, and the tables and applications of its two APIs."""
