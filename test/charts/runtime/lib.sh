# Shared by the entry scripts of the OVN runtime image; sourced, never run.
set -euo pipefail
export TZ=UTC

export OVN_RUNDIR=${OVN_RUNDIR:-/var/run/ovn} OVN_DBDIR=${OVN_DBDIR:-/etc/ovn} OVN_LOGDIR=${OVN_LOGDIR:-/var/log/ovn}
export OVS_RUNDIR=${OVS_RUNDIR:-/var/run/openvswitch} OVS_DBDIR=${OVS_DBDIR:-/etc/openvswitch}
export OVS_LOGDIR=${OVS_LOGDIR:-/var/log/openvswitch}
NB_PORT=${NB_PORT:-6641} SB_PORT=${SB_PORT:-6642}
NB_CLUSTER_PORT=${NB_CLUSTER_PORT:-6643} SB_CLUSTER_PORT=${SB_CLUSTER_PORT:-6644}
ENABLE_SSL=${ENABLE_SSL:-false} TLS_DIR=${TLS_DIR:-/var/run/tls}
ACCOUNT_DIR=${ACCOUNT_DIR:-/var/run/secrets/kubernetes.io/serviceaccount}

scheme=tcp
tls_options=()
if [[ $ENABLE_SSL == true ]]; then
  scheme=ssl
  tls_options=(--private-key="$TLS_DIR/key" --certificate="$TLS_DIR/cert" --ca-cert="$TLS_DIR/cacert")
fi

log() { printf '%(%FT%TZ)T %s: %s\n' -1 "${0##*/}" "$*" >&2; }
die() { log "$*"; exit 1; }

# A literal address in brackets, as OVSDB accepts it for both families; a host name as it is.
bracket() { if [[ $1 =~ ^[0-9.]+$ || $1 == *:* ]]; then printf '[%s]' "$1"; else printf '%s' "$1"; fi; }

# remotes IP,IP,... PORT: the OVSDB addresses of every listed server.
remotes() {
  local ip list=()
  for ip in ${1//,/ }; do list+=("$scheme:$(bracket "$ip"):$2"); done
  local IFS=,
  printf '%s' "${list[*]}"
}

# endpoints NB|SB: where this pod finds a database: a given address, the listed central addresses, or the Service.
endpoints() {
  local given=OVN_$1_ADDR port=$1_PORT service=OVN_$1_SERVICE_HOST service_port=OVN_$1_SERVICE_PORT
  if [[ -n ${!given:-} ]]; then printf '%s' "${!given}"
  elif [[ -n ${OVN_DB_IPS:-} ]]; then remotes "$OVN_DB_IPS" "${!port}"
  elif [[ -n ${!service:-} ]]; then remotes "${!service}" "${!service_port}"
  else die "no address of the $1 database: $given, OVN_DB_IPS and $service are all empty"; fi
}

# server_row REMOTE DATABASE: this server's own view of one database (connected, leader, cid), as JSON.
server_row() {
  ovsdb-client "${tls_options[@]}" --timeout=3 transact "$1" \
    '["_Server",{"op":"select","table":"Database","where":[["name","==","'"$2"'"]],"columns":["connected","leader","cid"]}]' 2>/dev/null
}

# poll SECONDS WHAT COMMAND...: runs the command until it succeeds, at most so long.
poll() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { log "gave up waiting for $what"; return 1; }
    sleep 0.2
  done
}

# pause SECONDS: a sleep that a signal ends at once.
pause() { sleep "$1" & wait $! || true; }

# alive PIDFILE PROGRAM: true while the process that wrote the file runs (and is still that program).
alive() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [[ -n $pid && $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]]
}

has_account() { [[ -r $ACCOUNT_DIR/token && -n ${KUBERNETES_SERVICE_HOST:-} ]]; }

# api METHOD PATH [CONTENT-TYPE BODY]: one request to the API server as the pod's account. Prints the body, then the
# status code on a line of its own. The token never becomes an argument that other processes can read.
api() {
  local data=() host=$KUBERNETES_SERVICE_HOST
  [[ $host != *:* ]] || host=[$host]
  [[ $# -lt 4 ]] || data=(--header "Content-Type: $3" --data "$4")
  curl --silent --show-error --max-time 10 --user-agent ovn-runtime --cacert "$ACCOUNT_DIR/ca.crt" \
    --header @<(printf 'Authorization: Bearer %s\n' "$(<"$ACCOUNT_DIR/token")") --write-out '\n%{http_code}\n' \
    "${data[@]}" --request "$1" "https://$host:${KUBERNETES_SERVICE_PORT:-443}$2"
}
