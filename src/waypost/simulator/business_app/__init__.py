"""The WhatsApp Business app on a business's own phone, for numbers that the app and the API share (coexistence).

`connection` makes a number shared and ends that; the signup window and the control API call it. `messages` sends from
the app, `contacts` is its address book, `history` its older messages, `sync` what a partner requests of both.
"""
