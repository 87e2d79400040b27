#!/bin/bash
# One central member in the foreground: the northbound and southbound servers, northd and the leader checker.
# NODE_IPS (comma separated) makes a RAFT cluster whose first address bootstraps; without it both are standalone.
source "${BASH_SOURCE[0]%/*}/lib.sh"
here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
umask 077

NODE_IPS=${NODE_IPS:-}
POD_IP=${POD_IP:?the address of this member}
DB_CLUSTER_ADDR=${DB_CLUSTER_ADDR:-$POD_IP}
OVN_ELECTION_TIMER=${OVN_ELECTION_TIMER:-5000}
SCHEMA_DIR=${SCHEMA_DIR:-/usr/share/ovn} OVS_SCHEMA_DIR=${OVS_SCHEMA_DIR:-/usr/share/openvswitch}

[[ -z $NODE_IPS || ,$NODE_IPS, == *",$POD_IP,"* ]] || die "this member's address $POD_IP is not in NODE_IPS $NODE_IPS"
mkdir -p "$OVN_RUNDIR" "$OVN_DBDIR" "$OVN_LOGDIR"

# live_cluster DATABASE PORT: the cluster id that another listed member serves now, if one does.
live_cluster() {
  local ip row
  for ip in ${NODE_IPS//,/ }; do
    [[ $ip != "$POD_IP" ]] || continue
    row=$(server_row "$scheme:$(bracket "$ip"):$2" "$1") || continue
    [[ $row == *'"connected":true'* && $row =~ \"cid\":\[\"uuid\",\"([0-9a-f-]{36})\"\] ]] || continue
    printf '%s' "${BASH_REMATCH[1]}"
    return
  done
}

# set_aside FILE WHY: an unusable file is kept beside the new one, never deleted.
set_aside() {
  local kept
  kept=$1.$2-$(date +%s)
  mv "$1" "$kept"
  log "kept $1 as $kept"
  printf '%s' "$kept"
}

join() { # DATABASE FILE LOCAL-ADDRESS CLUSTER-PORT CLUSTER-ID
  local ip others=()
  for ip in ${NODE_IPS//,/ }; do
    [[ $ip == "$POD_IP" ]] || others+=("$scheme:$(bracket "$ip"):$4")
  done
  log "$1: joins the cluster ${5:-of} ${others[*]}"
  ovsdb-tool ${5:+--cid="$5"} join-cluster "$2" "$1" "$3" "${others[@]}"
}

# prepare SHORT-NAME DATABASE CLIENT-PORT CLUSTER-PORT: leaves a file that the server can open.
prepare() {
  local file=$OVN_DBDIR/ovn$1_db.db schema=$SCHEMA_DIR/ovn-$1.ovsschema cluster contents kind=none
  local address=$scheme:$(bracket "$DB_CLUSTER_ADDR"):$4
  if [[ -s $file ]]; then
    if ovsdb-tool db-is-clustered "$file" 2>/dev/null; then kind=clustered
    elif ovsdb-tool db-is-standalone "$file" 2>/dev/null; then kind=standalone
    else die "$file is no OVSDB file"; fi
  fi
  if [[ -z $NODE_IPS ]]; then
    [[ $kind != clustered ]] || die "$file belongs to a cluster, but NODE_IPS is empty"
    [[ $kind == standalone ]] || ovsdb-tool create "$file" "$schema"
    return
  fi
  if [[ $kind == clustered ]]; then
    [[ $(ovsdb-tool db-local-address "$file") == "$address" ]] || die "$file belongs to another address than $address"
    return
  fi
  contents=$schema
  [[ $kind == none ]] || contents=$(set_aside "$file" standalone)
  cluster=$(live_cluster "$2" "$3")
  if [[ -z $cluster && $POD_IP == "${NODE_IPS%%,*}" ]]; then
    log "$2: bootstraps a cluster at $address"
    ovsdb-tool --election-timer="$OVN_ELECTION_TIMER" create-cluster "$file" "$contents" "$address"
  else
    join "$2" "$file" "$address" "$4" "$cluster"
  fi
}

# listeners FILE PORT: the addresses to listen on, as a small database of their own that the server reads at start.
listeners() {
  local address targets=() inserts='' names='' n=0
  if [[ ${ENABLE_BIND_LOCAL_IP:-true} == true && $(bracket "$POD_IP") == \[* ]]; then
    for address in $(tr ', ' '\n\n' <<<"${POD_IPS:-$POD_IP}"); do targets+=("p$scheme:$2:[$address]"); done
  else
    targets=("p$scheme:$2:[::]")
  fi
  for address in "${targets[@]}"; do
    inserts+=',{"op":"insert","table":"Connection","uuid-name":"c'$n'","row":{"target":"'$address'"}}'
    names+=${names:+,}'["named-uuid","c'$n'"]'
    n=$((n + 1))
  done
  rm -f "$1"
  ovsdb-tool create "$1" "$OVS_SCHEMA_DIR/local-config.ovsschema"
  ovsdb-tool transact "$1" '["Local_Config"'"$inserts"',{"op":"insert","table":"Config","row":{"connections":["set",['"$names"']]}}]' >/dev/null
}

declare -A children=()
serve() { # SHORT-NAME
  ovsdb-server "${tls_options[@]}" -vconsole:warn -vfile:info --log-file="$OVN_LOGDIR/ovsdb-server-$1.log" \
    --pidfile="$OVN_RUNDIR/ovn$1_db.pid" --unixctl="$OVN_RUNDIR/ovn$1_db.ctl" \
    --remote="punix:$OVN_RUNDIR/ovn$1_db.sock" --remote=db:Local_Config,Config,connections \
    "$OVN_DBDIR/ovn$1_db.db" "$OVN_DBDIR/ovn$1_local_config.db" &
  children[$!]="ovsdb-server ($1)"
}

stopping=false
trap 'stopping=true' TERM INT

# Every child is told to leave through its control socket (a RAFT leader then hands over); what stays is terminated.
stop_all() {
  local target pid
  for target in "$OVN_RUNDIR"/ovn-northd.*.ctl "$OVN_RUNDIR"/ovn{nb,sb}_db.ctl; do
    [[ -S $target ]] && ovs-appctl -T 3 -t "$target" exit >/dev/null 2>&1 || true
  done
  for pid in "${!children[@]}"; do
    [[ ${children[$pid]} != leader-checker ]] || kill "$pid" 2>/dev/null || true
    poll 5 "${children[$pid]} to end" eval "! kill -0 $pid" || kill "$pid" 2>/dev/null || true
  done
  wait || true
}

rm -f "$OVN_RUNDIR"/ovn-northd.*.ctl
prepare nb OVN_Northbound "$NB_PORT" "$NB_CLUSTER_PORT"
prepare sb OVN_Southbound "$SB_PORT" "$SB_CLUSTER_PORT"
listeners "$OVN_DBDIR/ovnnb_local_config.db" "$NB_PORT"
listeners "$OVN_DBDIR/ovnsb_local_config.db" "$SB_PORT"
chmod 600 "$OVN_DBDIR"/*.db
serve nb
serve sb
for db in nb sb; do
  if ! poll 30 "the $db server to answer" ovs-appctl -T 2 -t "$OVN_RUNDIR/ovn${db}_db.ctl" version; then
    stop_all
    exit 1
  fi
  ovs-appctl -T 5 -t "$OVN_RUNDIR/ovn${db}_db.ctl" ovsdb-server/memory-trim-on-compaction on >/dev/null
done
ovn-northd "${tls_options[@]}" -vconsole:warn -vfile:info --log-file="$OVN_LOGDIR/ovn-northd.log" --pidfile \
  --n-threads="${OVN_NORTHD_N_THREADS:-1}" \
  --ovnnb-db="$(remotes "${NODE_IPS:-$POD_IP}" "$NB_PORT")" --ovnsb-db="$(remotes "${NODE_IPS:-$POD_IP}" "$SB_PORT")" &
children[$!]=ovn-northd
bash "$here/ovn-leader-checker.sh" &
children[$!]=leader-checker
log "member $POD_IP runs"

gone=
code=0
wait -n -p gone || code=$?
if [[ $stopping == true ]]; then
  log 'stops on request'
  stop_all
  exit 0
fi
log "${children[$gone]:-a child} ended with code $code; the member stops"
unset "children[$gone]"
stop_all
exit 1
