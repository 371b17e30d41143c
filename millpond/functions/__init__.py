"""The user's functions: what they are, how they are called, and the processes they run in."""
