"""C text to a syntax tree: the preprocessor, the parser, places in the user's file, the parts to compile."""
