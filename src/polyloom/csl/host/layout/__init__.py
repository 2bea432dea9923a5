"""`SdkLayout`: code regions placed and connected from Python, compiled as a layout program of CSL."""
