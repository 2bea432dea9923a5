"""Protocol buffers that models are stored in: our own statement of the messages, read by ``protobuf``."""
