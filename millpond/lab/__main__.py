"""`python -m millpond.lab`: the lab without the rest of the command line."""

from millpond.lab.commands import app

if __name__ == "__main__":
    app()
