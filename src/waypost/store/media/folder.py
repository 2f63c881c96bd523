"""Whether the media folder is the one that the other processes of a store use.

The bytes of media are files. Where several processes share a store they must share the folder too, or a
file that one of them has acknowledged is missing to the one that has to send it. So the folder has a
name in a file of its own, and the store knows the name of its folder.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, insert, select

from waypost.store.contract import WrongStore
from waypost.store.tables import store_facts

NAME_FILE: Final = ".waypost-media"
_FACT: Final = "media folder"


def name_of(folder: Path, new_name: str) -> str:
    """The name of a folder; one that has none is given a new one, by one process only."""
    path = folder / NAME_FILE
    if not path.exists():
        mine = folder / f"{NAME_FILE}-{new_name}"
        with mine.open("w", encoding="ascii") as file:
            file.write(new_name + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(mine)  # whole, and never in another's place
        mine.unlink()
    return path.read_text(encoding="ascii").strip()


def check_folder(connection: Connection, folder: Path, name: str) -> None:
    """Take this folder for the store's, or compare it with that one.

    Args:
        connection: the writer's.
        folder: for the text.
        name: as `name_of` gives it.

    Raises:
        WrongStore: the store has another folder.
    """
    known = connection.execute(select(store_facts.c.value).where(store_facts.c.name == _FACT)).scalar_one_or_none()
    if known is None:
        connection.execute(insert(store_facts), {"name": _FACT, "value": name})
    elif known != name:
        raise WrongStore(
            f"{folder} is not the media folder that the other processes of this store use: give all of them "
            f"the same one with --data, over the network where they are on several machines "
            f"(or, to make this one the store's, write {known} into {folder / NAME_FILE})"
        )
