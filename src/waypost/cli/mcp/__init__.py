"""`waypost mcp`: tools for agents, by the Model Context Protocol; its SDK is an extra that only this command loads."""
