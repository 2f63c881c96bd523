"""The checks of `waypost doctor`. Each module checks one subject and returns results with fix hints."""
