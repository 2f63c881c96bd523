"""Pages that list an app's messages and show the trace of one message."""
