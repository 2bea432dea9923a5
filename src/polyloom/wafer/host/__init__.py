"""The host's side: what it loads, feeds and collects."""
