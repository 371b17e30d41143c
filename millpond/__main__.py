"""Lets `python -m millpond` do what `millpond` does."""

from millpond.cli import main

if __name__ == "__main__":
    main()
