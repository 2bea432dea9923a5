"""Results whose elements take turns in memory: parts of records, digits of the iterators that name them."""
