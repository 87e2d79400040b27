#!/bin/bash
# The node's part in the foreground: its Open vSwitch database, ovs-vswitchd with the userspace datapath, ovn-controller.
# When a second pod starts on the same node (an update with surge), it writes its own name as the owner and asks the old
# daemons to leave; the old pod sees that and waits to be deleted instead of starting them again.
source "${BASH_SOURCE[0]%/*}/lib.sh"

OVS_SCHEMA_DIR=${OVS_SCHEMA_DIR:-/usr/share/openvswitch}
NODE_NAME=${NODE_NAME:?the name of this node}
ENCAP_IP=${ENCAP_IP:-${POD_IP:?the address of this node}}
mkdir -p "$OVS_RUNDIR" "$OVS_DBDIR" "$OVS_LOGDIR" "$OVN_RUNDIR" "$OVN_LOGDIR"
owner_file=$OVS_RUNDIR/owner
owner=${POD_NAME:-$HOSTNAME}/$$/$(date +%s%N)
database=$OVS_DBDIR/conf.db
socket=unix:$OVS_RUNDIR/db.sock

owns() { [[ $(cat "$owner_file" 2>/dev/null) == "$owner" ]]; }

# leave PIDFILE PROGRAM COMMAND...: tells a running daemon to end and waits until it has.
leave() {
  local pidfile=$1 program=$2 pid
  alive "$pidfile" "$program" || return 0
  pid=$(<"$pidfile")
  ovs-appctl -T 5 -t "${pidfile%.pid}.$pid.ctl" "${@:3}" >/dev/null 2>&1 || kill "$pid" 2>/dev/null || true
  poll 10 "$program $pid to end" eval "! kill -0 $pid" || kill -KILL "$pid" 2>/dev/null || true
}
# With --restart the chassis keeps its rows, so a restart of the pod moves no flows of others.
leave_all() {
  leave "$OVN_RUNDIR/ovn-controller.pid" ovn-controller exit --restart
  leave "$OVS_RUNDIR/ovs-vswitchd.pid" ovs-vswitchd exit
  leave "$OVS_RUNDIR/ovsdb-server.pid" ovsdb-server exit
}

declare -A children=()
stopping=false
crashes=0
trap 'stopping=true' TERM INT

printf '%s' "$owner" >"$owner_file"
leave_all
if [[ ! -s $database ]]; then
  ovsdb-tool create "$database" "$OVS_SCHEMA_DIR/vswitch.ovsschema"
elif [[ $(ovsdb-tool needs-conversion "$database" "$OVS_SCHEMA_DIR/vswitch.ovsschema") == yes ]]; then
  ovsdb-tool convert "$database" "$OVS_SCHEMA_DIR/vswitch.ovsschema"
fi
[[ -s $OVS_DBDIR/system-id.conf ]] || cat /proc/sys/kernel/random/uuid >"$OVS_DBDIR/system-id.conf"
if [[ ! -c /dev/net/tun ]]; then
  # The userspace datapath makes br-int as a tap device.
  mkdir -p /dev/net
  mknod -m 600 /dev/net/tun c 10 200
fi

ovsdb-server -vconsole:warn -vfile:info --log-file="$OVS_LOGDIR/ovsdb-server.log" --pidfile \
  --remote="punix:$OVS_RUNDIR/db.sock" "$database" &
children[$!]=ovsdb-server
if ! poll 30 'the database of the node' ovsdb-client --timeout=2 list-dbs "$socket"; then
  leave_all
  exit 1
fi
vsctl() { ovs-vsctl --timeout=10 --db="$socket" --no-wait "$@"; }
vsctl init
vsctl set Open_vSwitch . external-ids:system-id="$(<"$OVS_DBDIR/system-id.conf")" external-ids:hostname="$NODE_NAME" \
  external-ids:ovn-remote="\"$(endpoints SB)\"" external-ids:ovn-encap-type="${TUNNEL_TYPE:-geneve}" \
  external-ids:ovn-encap-ip="$ENCAP_IP" external-ids:ovn-bridge-datapath-type=netdev \
  external-ids:ovn-remote-probe-interval="${OVN_REMOTE_PROBE_INTERVAL:-10000}" \
  external-ids:ovn-openflow-probe-interval="${OVN_REMOTE_OPENFLOW_INTERVAL:-180}"
ovs-vswitchd -vconsole:warn -vfile:info --log-file="$OVS_LOGDIR/ovs-vswitchd.log" --pidfile "$socket" &
children[$!]=ovs-vswitchd
start_controller() {
  ovn-controller "${tls_options[@]}" -vconsole:warn -vfile:info --log-file="$OVN_LOGDIR/ovn-controller.log" --pidfile "$socket" &
  children[$!]=ovn-controller
  controller_started=$SECONDS
}
start_controller
log "node $NODE_NAME runs, chassis $(<"$OVS_DBDIR/system-id.conf")"

# ovn-controller may crash while its bridge is new (seen with 23.03); flows stay as they are until the next one runs, so
# one that was killed by a signal is started again, at most every ten seconds. Everything else ends the pod.
gone=
code=0
while [[ $stopping == false ]]; do
  code=0
  wait -n -p gone || code=$?
  [[ $stopping == false && ${children[$gone]:-} == ovn-controller && $code -gt 128 ]] && owns || break
  log "ovn-controller ended with code $code; starts it again"
  unset "children[$gone]"
  while [[ $stopping == false ]] && ((SECONDS < controller_started + 10 && crashes > 0)); do pause 1; done
  crashes=$((crashes + 1))
  [[ $stopping == true ]] || start_controller
done
if owns; then
  if [[ $stopping == true ]]; then log 'stops on request'; else log "${children[$gone]:-a child} ended with code $code; the node's daemons stop"; fi
  leave_all
  wait || true
  [[ $stopping == true ]]
  exit
fi
log 'another pod took the daemons over; waits to be deleted'
while [[ $stopping == false ]]; do pause 3600; done
