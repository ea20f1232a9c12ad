#!/bin/sh
# report.sh STORE TASK BEGAN OUTCOME [RATE]: the minutes since BEGAN, times RATE, and what came of it.
# OUTCOME is what the CI calls it: success, failure or failed, cancelled or canceled. It fails no build.
set -u
store=$1 task=$2 began=$3 outcome=$4 rate=${5:-1}
if [ -z "$task" ]; then
  exit 0 # there was no decision
fi
cost=$(awk -v began="$began" -v now="$(date +%s)" -v rate="$rate" \
  'BEGIN { seconds = now - began; print (seconds < 1 ? 1 : seconds) / 60 * rate }')

case $outcome in
  success) set -- --reward 1 --cost "$cost" ;;
  cancelled | canceled) set -- --cancel ;;
  failure | failed) set -- --failed --cost "$cost" --reason "$outcome" ;;
  *)
    echo "worthwhile: task $task is not reported: outcome '$outcome' is not success, failure or cancelled" >&2
    exit 0
    ;;
esac
worthwhile report "$store" "$task" "$@" ||
  echo "worthwhile: task $task could not be reported ($outcome, cost $cost)" >&2
