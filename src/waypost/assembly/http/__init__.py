"""Our HTTP servers: sockets, protocol, limits, host check."""
