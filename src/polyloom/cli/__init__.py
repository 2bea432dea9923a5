"""The command line: one file per verb, which parses arguments, calls the API and prints."""
