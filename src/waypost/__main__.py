"""Entry point of `python -m waypost`."""

from waypost.cli.main import main

main()
