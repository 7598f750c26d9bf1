"""Write tables and pages from the data files."""
