#!/bin/sh
# decide.sh FILE STORE KIND USUAL OPTION…: adds task=, option= and began= to FILE.
# If the scheduler cannot be reached, the option is USUAL and there is no task: it stops no build.
set -u
file=$1 store=$2 kind=$3 usual=$4
shift 4
tab=$(printf '\t')

if answer=$(worthwhile decide "$store" "$kind" "$@" ${usual:+--usual "$usual"} --lease "${LEASE:-21600}"); then
  task=${answer%%"$tab"*} option=${answer#*"$tab"}
elif [ -n "$usual" ]; then
  echo "worthwhile: no decision; taking $usual, which is not reported" >&2
  task='' option=$usual
else
  echo "worthwhile: no decision, and there is no usual option to take" >&2
  exit 1
fi
printf 'task=%s\noption=%s\nbegan=%s\n' "$task" "$option" "$(date +%s)" >> "$file"
