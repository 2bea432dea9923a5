"""What a C program means, found without the transformations: by a C compiler, or instance after instance."""
