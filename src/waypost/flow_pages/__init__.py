"""The pages of a played Flow: HTML of what the handset shows, with its style and script.

The console and the simulator's preview share them; they get what is shown as a `PlayerView`, and pass on the steps that
the script posts.
"""
