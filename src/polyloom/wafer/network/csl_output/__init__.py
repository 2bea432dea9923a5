"""Networks on one wafer as CSL projects."""
