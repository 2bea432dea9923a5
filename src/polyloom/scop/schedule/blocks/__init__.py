"""Host loops in blocks: updates that wait for the end of one are a product; kept values that they read."""
