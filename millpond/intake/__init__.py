"""What comes in: streams, relations and their sources, and the room that there is for it."""
