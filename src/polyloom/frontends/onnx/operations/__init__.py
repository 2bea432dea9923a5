"""The operations of ONNX, a table in each module. Source: the operators' specification, opsets 7 and later."""
