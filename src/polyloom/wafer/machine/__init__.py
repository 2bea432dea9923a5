"""What a processing element can do, and what it costs: machine files, instructions, their prices."""
