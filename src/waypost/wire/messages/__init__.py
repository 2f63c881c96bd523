"""Wire formats of messages: session forms, template forms and passthrough."""
