"""Which element is where, and when: streams, reductions, transfers, tasks, local memory."""
