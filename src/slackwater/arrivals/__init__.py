"""When data arrives: what is due, and what the next delta will bring."""
