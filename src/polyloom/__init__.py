"""Polyloom: a polyhedral compiler for tensor programs."""
