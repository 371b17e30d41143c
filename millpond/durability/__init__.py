"""What outlives the process: commits in a log, checkpoints, recovery and repair."""
