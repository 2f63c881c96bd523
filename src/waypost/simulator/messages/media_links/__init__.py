"""Media links of messages: fetched after each message was accepted, and before it is delivered."""
