"""From an md_hom under a schedule to a kernel tree, by passes from tree to tree."""
