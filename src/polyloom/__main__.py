"""``python -m polyloom``."""

from polyloom.cli.main import main

if __name__ == "__main__":
    main()
