#!/bin/bash
# Keeps the network's defaults: in the northbound database the cluster's router, the default switch and the join switch
# with their ports, and in the Kubernetes API the Vpc and the two Subnets that stand for them; with --enable-lb=true a load
# balancer per Service besides. Replicas need no leader: each object is written by one OVSDB transaction that holds only
# while no row of that name exists.
source "${BASH_SOURCE[0]%/*}/lib.sh"
trap 'exit 0' TERM INT

READY_FILE=${READY_FILE:-/tmp/controller-ready}
CLUSTER_ROUTER=ovn-cluster DEFAULT_LS=ovn-default NODE_SWITCH=join
ENABLE_LB=false
DEFAULT_CIDR=10.16.0.0/16 DEFAULT_GATEWAY='' NODE_SWITCH_CIDR=100.64.0.0/16
for argument in "$@"; do
  case $argument in
    --cluster-router=*) CLUSTER_ROUTER=${argument#*=} ;;
    --default-ls=*) DEFAULT_LS=${argument#*=} ;;
    --default-cidr=*) DEFAULT_CIDR=${argument#*=} ;;
    --default-gateway=*) DEFAULT_GATEWAY=${argument#*=} ;;
    --node-switch=*) NODE_SWITCH=${argument#*=} ;;
    --node-switch-cidr=*) NODE_SWITCH_CIDR=${argument#*=} ;;
    --enable-lb=*) ENABLE_LB=${argument#*=} ;;
  esac
done

northbound=$(endpoints NB)

# nb OPERATIONS: one transaction on the leader. A failed `wait` (the row is there already) is success too.
nb() {
  local answer
  answer=$(ovsdb-client -vconsole:warn "${tls_options[@]}" --timeout=10 transact "$northbound" "[\"OVN_Northbound\",$1]") || return 1
  [[ $answer != *'"error"'* || $answer == *'"error":"timed out"'* ]] || { log "northbound: $answer"; return 1; }
}
absent() {
  printf '{"op":"wait","timeout":0,"table":"%s","where":[["name","==","%s"]],"columns":["name"],"until":"==","rows":[]}' "$1" "$2"
}

# first_address CIDR: the first address of a network, its gateway unless one is given.
first_address() {
  local base=${1%%/*}
  if [[ $base == *:* ]]; then printf '%s1' "${base%%::*}::"; else printf '%s.%d' "${base%.*}" $((${base##*.} + 1)); fi
}
# A fixed address for a fixed name, so that every replica writes the same.
mac_of() { printf '0a:%s' "$(printf '%s' "$1" | sha256sum | sed -E 's/^(..)(..)(..)(..)(..).*/\1:\2:\3:\4:\5/')"; }

ensure_router() {
  nb "$(absent Logical_Router "$1"),"'{"op":"insert","table":"Logical_Router","row":{"name":"'"$1"'","external_ids":["map",[["vendor","kube-ovn"]]]}}'
}
ensure_switch() { # NAME CIDR[,CIDR] GATEWAY[,GATEWAY]
  local router_port=$CLUSTER_ROUTER-$1 switch_port=$1-$CLUSTER_ROUTER networks='' subnet='' cidr n=0
  local gateways=(${3//,/ })
  for cidr in ${2//,/ }; do
    networks+=${networks:+,}'"'${gateways[$n]:-$(first_address "$cidr")}/${cidr##*/}'"'
    [[ $cidr == *:* ]] || subnet='["subnet","'$cidr'"]'
    n=$((n + 1))
  done
  nb "$(absent Logical_Router_Port "$router_port"),"'
    {"op":"insert","table":"Logical_Router_Port","uuid-name":"lrp","row":{"name":"'"$router_port"'","mac":"'"$(mac_of "$router_port")"'","networks":["set",['"$networks"']]}},
    {"op":"mutate","table":"Logical_Router","where":[["name","==","'"$CLUSTER_ROUTER"'"]],"mutations":[["ports","insert",["named-uuid","lrp"]]]}' &&
    nb "$(absent Logical_Switch "$1"),"'
    {"op":"insert","table":"Logical_Switch_Port","uuid-name":"lsp","row":{"name":"'"$switch_port"'","type":"router","addresses":"router","options":["map",[["router-port","'"$router_port"'"]]]}},
    {"op":"insert","table":"Logical_Switch","row":{"name":"'"$1"'","ports":["named-uuid","lsp"],"other_config":["map",['"$subnet"']],"external_ids":["map",[["vendor","kube-ovn"]]]}}'
}

declare -A written=()
ensure_object() { # PLURAL NAME BODY
  [[ -z ${written[$1/$2]:-} ]] || return 0
  local answer
  answer=$(api POST "/apis/kubeovn.io/v1/$1?fieldManager=kube-ovn-controller" application/json "$3") || return 1
  case ${answer##*$'\n'} in
    201 | 409) written[$1/$2]=yes ;;
    *) log "$1 $2 not written, the API server answered ${answer##*$'\n'}"; return 1 ;;
  esac
}
subnet_body() { # NAME CIDR GATEWAY
  local protocol=IPv4
  case $2 in *.*,*) protocol=Dual ;; *:*) protocol=IPv6 ;; esac
  printf '{"apiVersion":"kubeovn.io/v1","kind":"Subnet","metadata":{"name":"%s"},"spec":{"vpc":"%s","protocol":"%s","cidrBlock":"%s","gateway":"%s"}}' \
    "$1" "$CLUSTER_ROUTER" "$protocol" "$2" "$3"
}
gateways_of() {
  local cidr list=()
  for cidr in ${1//,/ }; do list+=("$(first_address "$cidr")"); done
  local IFS=,
  printf '%s' "${list[*]}"
}
DEFAULT_GATEWAY=${DEFAULT_GATEWAY:-$(gateways_of "$DEFAULT_CIDR")}
JOIN_GATEWAY=$(gateways_of "$NODE_SWITCH_CIDR")

pass() {
  ensure_router "$CLUSTER_ROUTER" &&
    ensure_switch "$DEFAULT_LS" "$DEFAULT_CIDR" "$DEFAULT_GATEWAY" &&
    ensure_switch "$NODE_SWITCH" "$NODE_SWITCH_CIDR" "$JOIN_GATEWAY" || return 1
  has_account || return 0
  ensure_object vpcs "$CLUSTER_ROUTER" '{"apiVersion":"kubeovn.io/v1","kind":"Vpc","metadata":{"name":"'"$CLUSTER_ROUTER"'"},"spec":{}}' &&
    ensure_object subnets "$DEFAULT_LS" "$(subnet_body "$DEFAULT_LS" "$DEFAULT_CIDR" "$DEFAULT_GATEWAY")" &&
    ensure_object subnets "$NODE_SWITCH" "$(subnet_body "$NODE_SWITCH" "$NODE_SWITCH_CIDR" "$JOIN_GATEWAY")"
}

services=
if [[ $ENABLE_LB == true ]] && has_account; then
  OVN_NB_DB=$northbound OVN_NBCTL_OPTIONS="${tls_options[*]}" "${POD_NETWORK:-${BASH_SOURCE[0]%/*}/podnetwork}" services &
  services=$!
  trap 'kill $services 2>/dev/null; exit 0' TERM INT
fi

log "keeps $CLUSTER_ROUTER, $DEFAULT_LS ($DEFAULT_CIDR) and $NODE_SWITCH ($NODE_SWITCH_CIDR) at $northbound"
state=
while :; do
  if pass; then now=kept; touch "$READY_FILE"; else now=failing; fi
  [[ $now == "$state" ]] || log "defaults: $now"
  state=$now
  [[ -z $services ]] || kill -0 "$services" 2>/dev/null || die 'the writer of load balancers ended'
  pause 5
done
