"""Operations of the admin API on the personal data of recipients."""
