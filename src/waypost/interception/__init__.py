"""`waypost intercept`: the hosts that a program has in its code lead to a sandbox, for that program alone.

`hosts` is the table of them. `authority` makes certificates for exactly those, and `trust_files` the files that
programs trust; `child_variables` names both in the environment of the child. `listeners` accept
connections, `request_relay` serves what arrives for those hosts, and `proxy` is the HTTP proxy. `child` starts the program through `launcher`, a script of its own that gives it a name map,
and `connect_redirection` leads its connections to that map's address here. `interception` connects the parts.
"""
