"""The pages that list what an app has sent, and show the whole way of one message."""
