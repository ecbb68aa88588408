"""What an operator does in a shell: `python main.py doctor`, `backup`, `restore`, `user`, `migrate`, `export`."""
