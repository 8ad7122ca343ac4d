"""Puts our hooks into the settings of agents, and takes exactly that out again.

command         the command line that the agent runs, made to last
settingstext    a settings file as text, edited so that everything else stays as it is
settingsfile    the file itself: links, modes, backups
receipts        what was written where, so that it can be taken out to the byte
canary          the command line tried out before it is installed
steps           all of it in order
"""
