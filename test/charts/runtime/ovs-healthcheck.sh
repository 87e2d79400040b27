#!/bin/bash
# Probe of a node: its database, ovs-vswitchd and ovn-controller answer. Whether the chassis is connected is evidence, not
# readiness. A controller that refuses a rebuilt southbound database because its index went back is told to forget it.
source "${BASH_SOURCE[0]%/*}/lib.sh"

ovsdb-client --timeout=5 list-dbs "unix:$OVS_RUNDIR/db.sock" >/dev/null || die 'the database of the node does not answer'
ovs-appctl -T 5 -t ovs-vswitchd version >/dev/null || die 'ovs-vswitchd does not answer'
ovn-appctl -T 5 -t ovn-controller version >/dev/null || die 'ovn-controller does not answer'
if tail -n 6 "$OVN_LOGDIR/ovn-controller.log" 2>/dev/null | grep -q 'clustered database server has stale data'; then
  ovn-appctl -T 5 -t ovn-controller sb-cluster-state-reset
fi
