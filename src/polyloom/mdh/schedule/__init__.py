"""Schedules of an md_hom: what they are, which are legal, what each is expected to cost."""
