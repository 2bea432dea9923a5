"""The walk through a static control part: each statement of C becomes drafts of statements with domains."""
