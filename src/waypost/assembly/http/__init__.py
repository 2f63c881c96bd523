"""The HTTP servers: sockets, protocol, limits, host check."""
