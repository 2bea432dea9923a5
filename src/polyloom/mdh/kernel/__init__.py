"""A scheduled md_hom, or a nest, as the text of an OpenCL kernel."""
