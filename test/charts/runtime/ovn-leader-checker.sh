#!/bin/bash
# Tells where the leaders are: labels this pod for the selectors of the Services ovn-nb, ovn-sb and ovn-northd, and, as
# the northbound or southbound leader, keeps the options that belong to the cluster as a whole.
source "${BASH_SOURCE[0]%/*}/lib.sh"
trap 'exit 0' TERM INT

leads() { # SHORT-NAME DATABASE
  if [[ $(server_row "unix:$OVN_RUNDIR/ovn$1_db.sock" "$2") == *'"leader":true'* ]]; then echo true; else echo false; fi
}
northd_leads() {
  if [[ $(ovn-appctl -T 3 -t ovn-northd status 2>/dev/null) == *active* ]]; then echo true; else echo false; fi
}
label() {
  local answer
  answer=$(api PATCH "/api/v1/namespaces/$POD_NAMESPACE/pods/$POD_NAME" application/merge-patch+json \
    '{"metadata":{"labels":{"ovn-nb-leader":"'"$1"'","ovn-sb-leader":"'"$2"'","ovn-northd-leader":"'"$3"'"}}}') || return 1
  [[ ${answer##*$'\n'} == 2* ]] || { log "labels not written, the API server answered ${answer##*$'\n'}"; return 1; }
}
# The row appears with the first northd; until then these do nothing.
options_of_leader() { # SHORT-NAME
  local probe=${PROBE_INTERVAL:-180000}
  if [[ $1 == nb ]]; then
    ovn-nbctl --timeout=5 --db="unix:$OVN_RUNDIR/ovnnb_db.sock" --if-exists set NB_Global . \
      options:northd_probe_interval="${OVN_NORTHD_PROBE_INTERVAL:-5000}" options:use_logical_dp_groups=true \
      options:inactivity_probe="$probe"
  else
    ovn-sbctl --timeout=5 --db="unix:$OVN_RUNDIR/ovnsb_db.sock" --if-exists set SB_Global . options:inactivity_probe="$probe"
  fi >/dev/null 2>&1
}

written=
declare -A kept=([nb]=false [sb]=false)
has_account || log 'no account of the API server: leaders are not written as labels'
while :; do
  nb=$(leads nb OVN_Northbound) sb=$(leads sb OVN_Southbound) northd=$(northd_leads)
  for db in nb sb; do
    if [[ ${!db} == false ]]; then kept[$db]=false
    elif [[ ${kept[$db]} == false ]] && options_of_leader "$db"; then kept[$db]=true; fi
  done
  if [[ "$nb $sb $northd" != "$written" ]]; then
    log "leads: northbound $nb, southbound $sb, northd $northd"
    if ! has_account || label "$nb" "$sb" "$northd"; then written="$nb $sb $northd"; fi
  fi
  pause "${OVN_LEADER_PROBE_INTERVAL:-5}"
done
