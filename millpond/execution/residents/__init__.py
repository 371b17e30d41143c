"""Residents: processes beside the driver that stay, and do task after task of its steps."""
