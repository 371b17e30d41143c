"""Which version of Millpond this is."""

VERSION = "0.1.0"
