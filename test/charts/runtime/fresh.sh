#!/bin/bash
# Probe by age: `fresh.sh FILE SECONDS` holds while the file was touched within so many seconds.
written=$(stat -c %Y "$1" 2>/dev/null) || { echo "$1 was never written" >&2; exit 1; }
age=$(($(date +%s) - written))
((age <= $2)) || { echo "$1 is $age s old, more than $2" >&2; exit 1; }
