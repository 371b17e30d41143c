"""Window joins with less memory than their windows need."""
