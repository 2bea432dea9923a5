"""From a plan to a host program: its statements as md_homs, scans and nests."""
