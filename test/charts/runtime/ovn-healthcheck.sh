#!/bin/bash
# Probe of a central member. `ovn-healthcheck.sh` (readiness): all three daemons answer, no database has failed or lost
# its cluster, none is still joining. `ovn-healthcheck.sh alive` (liveness): the same, but joining is no reason to restart.
source "${BASH_SOURCE[0]%/*}/lib.sh"

ovn-appctl -T 5 -t ovn-northd status >/dev/null || die 'northd does not answer'
for pair in nb:OVN_Northbound sb:OVN_Southbound; do
  control=$OVN_RUNDIR/ovn${pair%%:*}_db.ctl database=${pair##*:}
  storage=$(ovs-appctl -T 5 -t "$control" ovsdb-server/get-db-storage-status "$database") || die "$database does not answer"
  [[ $storage != *inconsistent* ]] || die "$database: $storage"
  [[ -n ${NODE_IPS:-} ]] || continue
  status=$(ovs-appctl -T 5 -t "$control" cluster/status "$database") || die "$database is not served"
  state=$(sed -n 's/^Status: //p' <<<"$status") role=$(sed -n 's/^Role: //p' <<<"$status")
  case $state in
    failed*) die "$database has failed" ;;
    disconnected*) [[ $role != candidate ]] || die "$database has no leader" ;;
    joining*) [[ ${1:-} == alive ]] || die "$database is still joining" ;;
  esac
done
