"""Work on several processes, of this machine or of a cluster: a death costs the task at hand only."""
