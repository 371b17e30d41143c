"""How the operators of a graph are run: steps, units, places, and who executes what."""
