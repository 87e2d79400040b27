#!/bin/bash
# Before the node agent: the two plugins that the configuration will name are there, and no half-written file is left.
source "${BASH_SOURCE[0]%/*}/lib.sh"

CNI_CONF_DIR=${CNI_CONF_DIR:-/etc/cni/net.d} CNI_BIN_DIR=${CNI_BIN_DIR:-/opt/cni/bin}
rm -f "$CNI_CONF_DIR"/*-kube-ovn.conflist.tmp
for plugin in bridge host-local; do
  # A link to elsewhere on the node can not be followed from here.
  [[ -x $CNI_BIN_DIR/$plugin || -L $CNI_BIN_DIR/$plugin ]] || die "the node has no CNI plugin $plugin in the directory mounted at $CNI_BIN_DIR"
done
