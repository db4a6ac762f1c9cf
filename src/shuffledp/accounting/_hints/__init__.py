"""Guesses: nothing in here can make an answer wrong."""
