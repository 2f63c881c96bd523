"""The commands."""

import gc

# What a command imports lives as long as it does, and is most of what it makes: looking through it every
# 700 objects took a tenth of the time that `waypost dev` needs until it answers. A service sets its own.
gc.set_threshold(50_000, 10, 10)
