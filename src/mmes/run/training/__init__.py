"""What training a network needs besides: batches of data, and validation."""
