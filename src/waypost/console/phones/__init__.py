"""The page of phones that people hold: chats as on the handset, and everything a person does with one."""
