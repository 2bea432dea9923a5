"""What an md_hom costs under a schedule: steps, vectors, registers, caches; on processors and on GPUs."""
