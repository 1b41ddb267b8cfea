"""What variables are made of: their rows and their dtypes."""
