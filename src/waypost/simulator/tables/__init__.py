"""What is found by more than its key: tables with columns of their own, their rows and their SQL."""
