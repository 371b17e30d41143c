"""Section 4.1 of the STREAM paper: what constraints of streams save; answers stay exact."""
