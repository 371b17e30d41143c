"""The three levels of the HMTS paper: virtual operators, partitions with threads, their turns."""
