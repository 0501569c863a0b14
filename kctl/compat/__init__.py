"""Drop-in commands: tools of Apache Kafka, with their options, exit codes and standard output.

Standard output and exit codes are those of 3.9.1; help and messages on stderr are our own.
"""
