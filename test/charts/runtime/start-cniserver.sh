#!/bin/bash
# The agent of the node's pods: with it, pods become ports of OVN. It tells the runtime of the plugin once the chassis of
# the node is connected, keeps the node joined to the pod network, and answers the plugin.
source "${BASH_SOURCE[0]%/*}/lib.sh"

OVN_NB_DB=$(endpoints NB)
export OVN_NB_DB OVN_NBCTL_OPTIONS="${tls_options[*]}"
exec "${POD_NETWORK:-${BASH_SOURCE[0]%/*}/podnetwork}" agent "$@"
