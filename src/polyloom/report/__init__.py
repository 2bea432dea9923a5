"""How results look to a person, on a terminal and in JSON documents."""
