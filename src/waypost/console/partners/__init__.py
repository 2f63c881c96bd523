"""The page of partners: a form that creates one with everything that it needs to send, for the administrator."""
