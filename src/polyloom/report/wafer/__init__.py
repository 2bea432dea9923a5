"""Results of the wafer back end for a person: analyses, maps, layers, simulations."""
