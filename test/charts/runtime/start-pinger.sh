#!/bin/bash
# An ordinary pod that uses the pod network: each round asks the API server through its Service and pings the other
# pingers. Only the first decides readiness; a peer that does not answer is told, because it may be the peer's fault.
source "${BASH_SOURCE[0]%/*}/lib.sh"
trap 'exit 0' TERM INT

READY_FILE=${READY_FILE:-/tmp/pinger-ready}
POD_NAMESPACE=${POD_NAMESPACE:?the namespace of this pod}
POD_IP=${POD_IP:?the address of this pod}

state=
while :; do
  silent=()
  reached=0
  answer=$(api GET "/api/v1/namespaces/$POD_NAMESPACE/pods?labelSelector=app%3Dkube-ovn-pinger") || answer=$'\n000'
  if [[ ${answer##*$'\n'} == 200 ]]; then
    touch "$READY_FILE"
    while read -r peer; do
      [[ -n $peer && $peer != "$POD_IP" ]] || continue
      if ping -c 1 -W 2 "$peer" >/dev/null 2>&1; then reached=$((reached + 1)); else silent+=("$peer"); fi
    done < <(grep -o '"podIP":"[^"]*"' <<<"$answer" | cut -d'"' -f4)
    now="API server reached; $reached peers answer${silent[*]:+, silent: ${silent[*]}}"
  else
    now="API server not reached (${answer##*$'\n'})"
  fi
  [[ $now == "$state" ]] || log "$now"
  state=$now
  pause 5
done
