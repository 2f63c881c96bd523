"""`waypost mcp`: tools for agents, by the Model Context Protocol; the SDK is an extra and loaded by this command only."""
