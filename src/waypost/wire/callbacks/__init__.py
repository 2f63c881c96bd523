"""Callback bodies in versions 2 and 3, the table of callback kinds, and signatures."""
