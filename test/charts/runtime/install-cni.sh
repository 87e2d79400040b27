#!/bin/bash
# Before the node agent: the plugin that the configuration names is there, whole, and no half-written file is left.
source "${BASH_SOURCE[0]%/*}/lib.sh"

CNI_CONF_DIR=${CNI_CONF_DIR:-/etc/cni/net.d} CNI_BIN_DIR=${CNI_BIN_DIR:-/opt/cni/bin}
rm -f "$CNI_CONF_DIR"/*-kube-ovn.conflist.tmp
cp "${POD_NETWORK:-${BASH_SOURCE[0]%/*}/podnetwork}" "$CNI_BIN_DIR/.kube-ovn.new"
chmod 755 "$CNI_BIN_DIR/.kube-ovn.new"
mv -f "$CNI_BIN_DIR/.kube-ovn.new" "$CNI_BIN_DIR/kube-ovn"
