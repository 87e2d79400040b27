#!/bin/bash
# Watches the central member of its own node through the control sockets and tells every change of role, term or members.
source "${BASH_SOURCE[0]%/*}/lib.sh"
trap 'exit 0' TERM INT

READY_FILE=${READY_FILE:-/tmp/monitor-ready}
summary() { # SHORT-NAME DATABASE
  local control=$OVN_RUNDIR/ovn$1_db.ctl status
  if status=$(ovs-appctl -T 5 -t "$control" cluster/status "$2" 2>/dev/null); then
    printf '%s: %s, %s, term %s, %d servers' "$2" "$(sed -n 's/^Status: //p' <<<"$status")" \
      "$(sed -n 's/^Role: //p' <<<"$status")" "$(sed -n 's/^Term: //p' <<<"$status")" "$(grep -c '^    [^ ]* (.* at ' <<<"$status")"
  elif ovs-appctl -T 5 -t "$control" version >/dev/null 2>&1; then printf '%s: standalone' "$2"
  else
    printf '%s: no answer' "$2"
    return 1
  fi
}

state=
while :; do
  answered=true
  nb=$(summary nb OVN_Northbound) || answered=false
  sb=$(summary sb OVN_Southbound) || answered=false
  [[ $answered == false ]] || touch "$READY_FILE"
  [[ "$nb; $sb" == "$state" ]] || log "$nb; $sb"
  state="$nb; $sb"
  pause 5
done
