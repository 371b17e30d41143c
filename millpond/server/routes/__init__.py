"""What is asked under which address; one file a subject."""
