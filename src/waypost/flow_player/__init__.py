"""A player of Flow JSON: what a handset shows, allows and sends, as pure functions of a Flow and a state.

`playable` reads a Flow, `player` has the inputs of a person and the responses of an endpoint, `views` what is shown.
"""
