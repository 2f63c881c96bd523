"""`make simulate`: service, simulator and a partner's receiver in one thread, under one seed and a virtual clock.

A seed chooses the order of every step, the latency of every packet, and the faults; the same seed repeats all of it.
"""
