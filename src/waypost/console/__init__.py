"""The console: web pages for people. It reads the store and makes every change through the APIs."""
