"""The output of the commands: tables for people, JSON for programs, progress on a terminal."""
