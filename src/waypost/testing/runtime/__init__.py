"""How the service of a test run is started: in a thread, in a child process, or found running."""
