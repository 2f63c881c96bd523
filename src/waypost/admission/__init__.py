"""Decides when a job of dispatch or callbacks may start, and why not yet: circuits, slots, pace, schedules."""
