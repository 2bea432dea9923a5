"""Everything about sets and relations that knows nothing of tensors: isl is asked here."""
