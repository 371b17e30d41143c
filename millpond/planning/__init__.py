"""From a checked query to a graph of operators, as pure data."""
