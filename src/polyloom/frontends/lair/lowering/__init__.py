"""A LAIR syntax tree to a tensor program: names, sizes, statements, each rule checked."""
