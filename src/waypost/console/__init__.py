"""The console: the door for people. It looks into the store, and acts through the doors that scripts use too."""
