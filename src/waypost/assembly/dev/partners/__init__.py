"""Partners for tests in any language: created, observed and deleted through the control API of `waypost dev`."""
