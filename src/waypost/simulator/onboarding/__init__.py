"""Embedded signup: how a business gives an app access to its account and number, in a window of the operator.

`window_tables` has the facts of the window, `model` the people and businesses who use it, and `window` what happens in
it: whoever shows it, a page or a script, calls only that module. `exchange` is the way from a code to a token, `graph`
the other calls of an app, `grants` what is told and taken when access begins and ends.
"""
