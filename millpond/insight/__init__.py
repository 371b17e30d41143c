"""What an engine shows of itself: plans, measurements, and who holds the others up."""
