"""Networks on one wafer: a rectangle for every layer, streams between them, samples in a pipeline."""
