#!/bin/bash
# Gives the node its pod network once the node's chassis is connected: a CNI configuration that uses the stock bridge and
# host-local plugins of the node with the pod range that the API server holds for it. The file stays when the pod goes,
# as running pods still need their network.
source "${BASH_SOURCE[0]%/*}/lib.sh"
trap 'exit 0' TERM INT

NODE_NAME=${NODE_NAME:?the name of this node}
READY_FILE=${READY_FILE:-/tmp/cni-ready}
CNI_CONF_DIR=${CNI_CONF_DIR:-/etc/cni/net.d}
CNI_IPAM_DIR=${CNI_IPAM_DIR:-/run/kube-ovn/ipam}
NON_PRIMARY_CNI=${NON_PRIMARY_CNI:-false}
target=$CNI_CONF_DIR/${CNI_CONFIG_PRIORITY:-01}-kube-ovn.conflist

connected() {
  local pid
  pid=$(cat "$OVN_RUNDIR/ovn-controller.pid" 2>/dev/null) || return 1
  [[ $(ovs-appctl -T 5 -t "$OVN_RUNDIR/ovn-controller.$pid.ctl" connection-status 2>/dev/null) == connected ]]
}
# The node's pod ranges, one a line.
pod_ranges() {
  local answer
  answer=$(api GET "/api/v1/nodes/$NODE_NAME") || return 1
  [[ ${answer##*$'\n'} == 200 ]] || { log "node $NODE_NAME not read, the API server answered ${answer##*$'\n'}"; return 1; }
  [[ $answer =~ \"podCIDRs\":\[([^]]+)\] ]] || { log "node $NODE_NAME has no pod range yet"; return 1; }
  tr -d '"' <<<"${BASH_REMATCH[1]}" | tr , '\n'
}
configuration() { # RANGES
  local range ranges='' routes=''
  for range in $1; do
    ranges+=${ranges:+, }'[{"subnet": "'$range'"}]'
    if [[ $range == *:* ]]; then routes+=${routes:+, }'{"dst": "::/0"}'; else routes+=${routes:+, }'{"dst": "0.0.0.0/0"}'; fi
  done
  cat <<JSON
{
  "cniVersion": "0.4.0",
  "name": "kube-ovn",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "kube-ovn0",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "$CNI_IPAM_DIR",
        "ranges": [$ranges],
        "routes": [$routes]
      }
    }
  ]
}
JSON
}
# The runtime reads every *.conflist at once: the file appears whole or not at all.
install_configuration() {
  local ranges wanted
  ranges=$(pod_ranges) || return 1
  wanted=$(configuration "$ranges")
  [[ $(cat "$target" 2>/dev/null) != "$wanted" ]] || return 0
  printf '%s\n' "$wanted" >"$target.tmp"
  chmod 644 "$target.tmp"
  mv "$target.tmp" "$target"
  log "wrote $target for ${ranges//$'\n'/, }"
}

state=
while :; do
  if ! connected; then now='waits for the chassis of the node to be connected'
  elif [[ $NON_PRIMARY_CNI == true ]] || install_configuration; then now='node has its network'; touch "$READY_FILE"
  else now='waits for the pod range of the node'; fi
  [[ $now == "$state" ]] || log "$now"
  state=$now
  pause 3
done
