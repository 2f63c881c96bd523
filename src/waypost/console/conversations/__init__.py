"""The conversations pages: an app's recipients by last activity, and everything that was exchanged with one of them."""
