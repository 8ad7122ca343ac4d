"""Puts our hooks into the settings of agents, and takes exactly that out again.

agents          which events of which agent, with which matcher and time limit
versions        which of them the agent that is installed here knows
command         the command line that the agent runs, made to last
settingstext    a settings file as text, edited so that everything else stays as it is
settingsfile    the file itself: links, modes, backups
receipts        what was written where, so that it can be taken out to the byte
canary          the command line tried out before it is installed
steps           all of it in order
"""
