"""Graphs of machine-learning frameworks, whatever file they came from, to tensor programs.

    file -> read (onnx, tensorflow, torch) -> Graph -> lowering, by a table of operations -> Imported

The front end of a framework reads its files into a ``Graph`` and gives a table from the names of its
operations to functions; everything between is here. A function of the table gets a ``Context`` and makes
statements with its ``Builder``, mostly through ``frontends/graph/operations``, which all frameworks share.
"""
