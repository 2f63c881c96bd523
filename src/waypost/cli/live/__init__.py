"""Commands that exchange messages and callbacks with a running `waypost dev`, or follow them."""
