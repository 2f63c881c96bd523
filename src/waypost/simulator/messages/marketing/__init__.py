"""The API for marketing messages: who may use it, clicks on links, and statistics."""
