"""What conditions choose, as reductions: places of extremes, last values that are let through."""
