"""HTTP basics of the console: requests, sessions, headers, assets, live streams, formatting."""
