"""Everything in one go: `make bench`. Acceptance, then the whole street, then both profiles of the street."""

import argparse

import uvloop

from benchmarks import accept, street


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="About a minute, and rougher.")
    quick = parser.parse_args().quick
    rounds = ["--rounds", "1", "--seconds", "1"] if quick else []
    messages = "2000" if quick else "8000"
    uvloop.run(accept.main(accept.options_of([*rounds, "--profile"])))
    print()
    uvloop.run(street.main(street.options_of(["--messages", messages])))
    print()
    uvloop.run(
        street.main(street.options_of(["--messages", str(int(messages) // 2), "--rate", "200"]))
    )
    print()
    uvloop.run(street.main(street.options_of(["--messages", str(int(messages) // 2), "--profile"])))


if __name__ == "__main__":
    main()
