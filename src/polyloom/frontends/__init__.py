"""Front ends: what users have written, read and brought to the intermediate representation."""
