"""The command line: thin. It parses, calls the library and prints; it computes nothing itself.

main           finds the commands, reports an error on one line, exits with its status
options        options in titled groups, numbers as people write them, a command with its example
questions      randomizer, rounds and analysis: what epsilon, delta, calibrate, compare and curve share
collecting     what histogram, sum, mean and analyze share
files, output  what is read and written; what is printed, for people and as JSON
commands/      one file each, found by its name; what it does is its help
"""
