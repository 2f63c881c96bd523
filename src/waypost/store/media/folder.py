"""Check that all processes of a store use the same media folder.

The bytes of media are files. Where several processes share a store they must share the folder too, or a
file that one of them has acknowledged is missing for the one that has to send it. So the folder has a
name in a file of its own, and the store records the name of its folder.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, insert, select

from waypost.store.contract import WrongStore
from waypost.store.tables import store_properties

NAME_FILE: Final = ".waypost-media"
_FOLDER_PROPERTY: Final = "media folder"


def ensure_folder_name(folder: Path, new_name: str) -> str:
    """Return the name of a folder; a folder without one gets the new name, from one process only."""
    path = folder / NAME_FILE
    if not path.exists():
        own_file = folder / f"{NAME_FILE}-{new_name}"
        with own_file.open("w", encoding="ascii") as file:
            file.write(new_name + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(own_file)  # complete, and never replacing another's
        own_file.unlink()
    return path.read_text(encoding="ascii").strip()


def check_folder(connection: Connection, folder: Path | str, name: str) -> None:
    """Record this folder as the store's, or compare it with the recorded one.

    Args:
        connection: the writer's.
        folder: the folder or the URL of the bucket, for the error text.
        name: as returned by `ensure_folder_name`.

    Raises:
        WrongStore: the store has another folder.
    """
    known = connection.execute(
        select(store_properties.c.value).where(store_properties.c.name == _FOLDER_PROPERTY)
    ).scalar_one_or_none()
    if known is None:
        connection.execute(insert(store_properties), {"name": _FOLDER_PROPERTY, "value": name})
    elif known != name:
        raise WrongStore(
            f"{folder} is not the media folder that the other processes of this store use: set the same one "
            f"for all of them with --data, on a network file system if they run on several machines, or the same "
            f"bucket with WAYPOST_MEDIA_URL (or, to use this one for the store, write {known} into "
            f"{folder}/{NAME_FILE})"
        )
