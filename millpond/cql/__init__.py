"""CQL: text to checked statements (text, check), and their vocabulary, which needs no parser."""
