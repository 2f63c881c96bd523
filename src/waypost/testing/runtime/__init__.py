"""The service of a test run: started in a thread or in a child process, or running already."""
