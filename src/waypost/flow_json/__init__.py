"""Flow JSON, the operator's language of Flows: its tables, and the checks of a text.

It imports only `base`, so that the service, the simulator and the command line can share it.
"""
