"""Balle, Bell, Gascon, Nissim 2019, "The privacy blanket of the shuffle model"."""
