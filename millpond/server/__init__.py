"""HTTP and the web page: a third door to the engine, and the only one with a web framework."""
