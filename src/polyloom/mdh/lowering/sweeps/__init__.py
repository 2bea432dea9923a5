"""Sweeps over arrays that memory holds, fused block by block of rows, so that each row comes in once."""
