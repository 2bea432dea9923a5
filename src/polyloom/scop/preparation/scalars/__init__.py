"""Variables of one value each: in order, always set, and as steps of the values that they lead to."""
