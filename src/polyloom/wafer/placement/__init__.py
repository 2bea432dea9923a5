"""Automatic mapping: placements, tiles and ports for what a map leaves open."""
