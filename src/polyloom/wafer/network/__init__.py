"""Networks on one wafer: every layer on a rectangle of its own, streams between them, samples in a pipeline."""
