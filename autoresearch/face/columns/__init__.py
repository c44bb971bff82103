"""What lists show: the columns of each answer, declared once for the terminal, for programs and for the pages."""
