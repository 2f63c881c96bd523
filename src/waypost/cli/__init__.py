"""The commands."""

import gc

# The objects of a start-up live as long as the command. Collecting them took a tenth of the start-up time of
# `waypost dev`, even every 50,000 objects; it creates less than a million. A service sets its own threshold.
gc.set_threshold(1_000_000, 10, 10)
