"""Messages on the wire: session forms, template forms, passthrough."""
