"""Bodies of callbacks and requests of messages are compressed; those of earlier revisions remain as they are."""

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"
works_with = 8  # an older process would send the bodies as they are stored


def upgrade() -> None:
    """Add the column of compressed requests: the older one holds text."""
    op.add_column("messages", sa.Column("compressed_request", sa.LargeBinary(), nullable=True))
