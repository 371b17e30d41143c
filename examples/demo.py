"""The text demonstration, as `millpond demo --text` shows it."""

from __future__ import annotations

from millpond.demo.text import main

if __name__ == "__main__":
    main()
