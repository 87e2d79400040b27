#!/bin/bash
# An ordinary pod that uses the pod network: each round asks the API server through its Service and connects to the other
# pingers. Only the first decides readiness; a peer that does not answer is told, because it may be the peer's fault.
source "${BASH_SOURCE[0]%/*}/lib.sh"

READY_FILE=${READY_FILE:-/tmp/pinger-ready}
PINGER_PORT=${PINGER_PORT:-8080}
POD_NAMESPACE=${POD_NAMESPACE:?the namespace of this pod}
POD_IP=${POD_IP:?the address of this pod}
work=$(mktemp -d)

# What the peers connect to: a server of no database.
ovsdb-server -vconsole:warn --no-dbs --unixctl="$work/ctl" --remote="ptcp:$PINGER_PORT:$(bracket "$POD_IP")" &
listener=$!
trap 'kill $listener 2>/dev/null; rm -rf "$work"; exit 0' TERM INT

answers() { timeout 2 bash -c "exec 3<>/dev/tcp/$1/$PINGER_PORT" 2>/dev/null; }

state=
while kill -0 $listener 2>/dev/null; do
  silent=()
  reached=0
  answer=$(api GET "/api/v1/namespaces/$POD_NAMESPACE/pods?labelSelector=app%3Dkube-ovn-pinger") || answer=$'\n000'
  if [[ ${answer##*$'\n'} == 200 ]]; then
    touch "$READY_FILE"
    while read -r peer; do
      [[ -n $peer && $peer != "$POD_IP" ]] || continue
      if answers "$peer"; then reached=$((reached + 1)); else silent+=("$peer"); fi
    done < <(grep -o '"podIP":"[^"]*"' <<<"$answer" | cut -d'"' -f4 | sort -u)
    now="API server reached; $reached peers answer${silent[*]:+, silent: ${silent[*]}}"
  else
    now="API server not reached (${answer##*$'\n'})"
  fi
  [[ $now == "$state" ]] || log "$now"
  state=$now
  pause "${PINGER_INTERVAL:-5}"
done
rm -rf "$work"
die 'the listener for the peers ended'
