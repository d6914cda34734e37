"""Files that hold a vocabulary, a module for each format."""
