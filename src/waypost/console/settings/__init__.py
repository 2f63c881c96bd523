"""The partner portal: the account, its password and credentials, its apps, and who carries them."""
