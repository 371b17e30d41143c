"""The demonstrations: web-proxy traffic and the STREAM paper's queries, as text and as a page."""
