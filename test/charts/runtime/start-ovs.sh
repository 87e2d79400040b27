#!/bin/bash
# The node's part in the foreground: its Open vSwitch database, ovs-vswitchd with the userspace datapath, ovn-controller.
# With IFACE, that interface becomes a port of a bridge of its own, whose internal port takes its address over: tunnels must
# end in the switch, since the kernel has none, and the node's other addresses do not depend on it.
# When a second pod starts on the same node (an update with surge), it writes its own name as the owner and asks the old
# daemons to leave; the old pod sees that and waits to be deleted instead of starting them again.
source "${BASH_SOURCE[0]%/*}/lib.sh"

OVS_SCHEMA_DIR=${OVS_SCHEMA_DIR:-/usr/share/openvswitch}
NODE_NAME=${NODE_NAME:?the name of this node}
IFACE=${IFACE:-} TUNNEL_BRIDGE=${TUNNEL_BRIDGE:-br-phy}
mkdir -p "$OVS_RUNDIR" "$OVS_DBDIR" "$OVS_LOGDIR" "$OVN_RUNDIR" "$OVN_LOGDIR"

# The address for tunnels, as the interface has it, or had it when it was first taken: a file beside the chassis' id.
tunnel_address=
if [[ -n $IFACE ]]; then
  if [[ $(ip -4 -oneline address show dev "$IFACE") =~ inet\ ([0-9./]+) ]]; then printf '%s' "${BASH_REMATCH[1]}" >"$OVS_DBDIR/tunnel-address"; fi
  tunnel_address=$(cat "$OVS_DBDIR/tunnel-address" 2>/dev/null) || die "the interface $IFACE has no address for tunnels"
fi
ENCAP_IP=${ENCAP_IP:-${tunnel_address%%/*}}
ENCAP_IP=${ENCAP_IP:-${POD_IP:?the address of this node}}
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
# What the switch can do is read anew by each ovs-vswitchd (see without_zero_snat).
vsctl clear Open_vSwitch . datapaths -- set Open_vSwitch . external-ids:system-id="$(<"$OVS_DBDIR/system-id.conf")" external-ids:hostname="$NODE_NAME" \
  external-ids:ovn-remote="\"$(endpoints SB)\"" external-ids:ovn-encap-type="${TUNNEL_TYPE:-geneve}" \
  external-ids:ovn-encap-ip="$ENCAP_IP" external-ids:ovn-bridge-datapath-type=netdev \
  external-ids:ovn-remote-probe-interval="${OVN_REMOTE_PROBE_INTERVAL:-10000}" \
  external-ids:ovn-openflow-probe-interval="${OVN_REMOTE_OPENFLOW_INTERVAL:-180}"
if [[ -n $IFACE ]]; then
  vsctl --may-exist add-br "$TUNNEL_BRIDGE" -- set Bridge "$TUNNEL_BRIDGE" datapath_type=netdev \
    -- --may-exist add-port "$TUNNEL_BRIDGE" "$IFACE"
fi
ovs-vswitchd -vconsole:warn -vfile:info --log-file="$OVS_LOGDIR/ovs-vswitchd.log" --pidfile "$socket" &
children[$!]=ovs-vswitchd
# The internal port is new with each ovs-vswitchd.
if [[ -n $IFACE ]]; then
  if ! poll 20 "the port of $TUNNEL_BRIDGE" ip link set "$TUNNEL_BRIDGE" up; then
    leave_all
    exit 1
  fi
  ip address flush dev "$IFACE"
  ip address replace "$tunnel_address" dev "$TUNNEL_BRIDGE"
  # The kernel answers for any of its addresses on every interface: beside the bridge the interface would answer as well, with
  # its own MAC, and whoever keeps that answer sends what the bridge does not take for its own.
  ip link set "$IFACE" arp off
fi
# Open vSwitch 3.1.0 ends by an assertion (conn_update_state) when a packet meets a connection of its userspace datapath that
# was committed with an all-zero source NAT, has run out, and is not swept yet: the entry of the way back has the same hash
# and never runs out. ovn-controller uses that NAT where the switch offers it, so the offer is taken back before it starts.
# What is lost: a direct connection from the port of one through a load balancer to the same server is dropped while that
# one is remembered, for up to a minute.
without_zero_snat() {
  local change=(ovs-vsctl --timeout=30 "--db=$socket") id
  id=$(<"$OVS_DBDIR/system-id.conf")
  # ovs-vsctl waits for ovs-vswitchd, which fills in what a new row can do, and never again while it runs.
  "${change[@]}" --may-exist add-br br-int -- set Bridge br-int datapath_type=netdev fail-mode=secure \
    other-config:disable-in-band=true other-config:hwaddr="02:${id:0:2}:${id:2:2}:${id:4:2}:${id:6:2}:${id:9:2}" \
    -- --id=@netdev create Datapath external-ids:made-by=start-ovs.sh -- set Open_vSwitch . datapaths:netdev=@netdev >/dev/null &&
    "${change[@]}" set Datapath "$(vsctl get Open_vSwitch . datapaths:netdev)" capabilities:ct_zero_snat=false
}
if ! without_zero_snat; then
  log 'ovs-vswitchd did not take its first configuration within 30 s'
  leave_all
  exit 1
fi
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
