"""Count the words of the pages that are written by hand, by folder: `python -m benchmarks.words`.

Pages that `make reference` generates say so in a comment and are left out. The data below `docs/` from which they
come is counted apart.
"""

from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGES_OF_THE_ROOT: Final = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
GENERATED: Final = "<!-- Generated "


def is_generated(page: Path) -> bool:
    """Return True if a page says that `make reference` wrote it."""
    return GENERATED in page.read_text(encoding="utf-8")[:1000]


def hand_written() -> list[Path]:
    """Return the hand-written pages that are counted."""
    pages = [*(ROOT / name for name in PAGES_OF_THE_ROOT), *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if not is_generated(page)]


def count_words(pages: list[Path]) -> Counter[str]:
    """Return the words of pages by their folder below the root."""
    words: Counter[str] = Counter()
    for page in pages:
        words[page.parent.relative_to(ROOT).as_posix()] += len(page.read_text(encoding="utf-8").split())
    return words


def main() -> None:
    """Print the words of each folder and of all, then those of the data."""
    words = count_words(hand_written())
    for folder, count in sorted(words.items()):
        print(f"{folder:24}{count:>8}")
    print(f"{'all pages by hand':24}{words.total():>8}")
    print(f"{'data (docs/**/*.toml)':24}{count_words(sorted((ROOT / 'docs').rglob('*.toml'))).total():>8}")


if __name__ == "__main__":
    main()
