"""How values travel between processes and machines: questions and answers, and newest values, over ZeroMQ.

Each server's sockets are touched by one thread alone. Other threads wake it through a socket inside the process.
"""
