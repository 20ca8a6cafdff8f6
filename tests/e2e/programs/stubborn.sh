#!/bin/sh
# An agent that ignores polite requests to stop, and so does its child.
trap '' TERM INT
sh -c 'trap "" TERM INT; while :; do sleep 1; done' stubborn-child &
while :; do sleep 1; done
