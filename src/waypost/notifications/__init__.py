"""What is emitted when a state changes: trace events and the callbacks of subscriptions. Used by several stages."""
