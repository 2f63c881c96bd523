"""Waypost, Kannel and Jasmin at the same work, one after the other on one machine: `python -m benchmarks.peers`.

`docs/explanation/compared-with-peers.md` quotes a kept run and says what was compared.
"""
