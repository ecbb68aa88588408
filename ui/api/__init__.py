"""What programs see: one file a surface."""
