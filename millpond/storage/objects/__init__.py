"""A store at an address: its log and files are objects, and an engine works on copies of them."""
