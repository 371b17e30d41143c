"""How queries run together: what of one is read by others, and from when on."""
