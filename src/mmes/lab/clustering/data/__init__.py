"""Graph files of the paper's data sets and its table; NOTICE.md says where they come from."""
