"""Charts of what becomes of a tuple, and the runs and parts of a plan that follow from them."""
