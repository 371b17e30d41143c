"""What goes out: the results of queries, and how they reach readers, sinks and subscribers."""
