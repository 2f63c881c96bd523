"""What every page needs of HTTP: requests, sessions, headers, assets, live streams."""
