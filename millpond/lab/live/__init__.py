"""What the strategies and modes do on Spark, by the wall clock: it depends on the machine, so these
experiments are run by name only, and no verdict of theirs is recorded."""
