"""Traces: of some of the arrivals what became of them, step by step, told to OpenTelemetry."""
