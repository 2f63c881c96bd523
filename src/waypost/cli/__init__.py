"""The commands."""

import gc

# Most objects of a command come from its imports and live as long as it does. Collecting every 700 objects
# took a tenth of the start-up time of `waypost dev`. A service sets its own threshold.
gc.set_threshold(50_000, 10, 10)
