"""Stage 4 of 6, operators: one adapter per operator, each behind `contract.py`."""
