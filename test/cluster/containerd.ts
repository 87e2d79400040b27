/** Configuration of a node's containerd. All its paths are the usual ones: the node has its own /run and /var. */
export function containerdConfig(input: { readonly sandboxImage: string; readonly snapshotter: string }): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[${cri}]
sandbox_image = "${input.sandboxImage}"
# Machines without CAP_SYS_RESOURCE can not lower a score; without this every sandbox fails there.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
stream_server_address = "127.0.0.1"

[${cri}.cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"

[${cri}.containerd]
snapshotter = "${input.snapshotter}"
discard_unpacked_layers = true

[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[${cri}.containerd.runtimes.runc.options]
SystemdCgroup = false

[${cri}.registry]
config_path = "/etc/containerd/certs.d"
`;
}

/** hosts.toml that sends one registry name to another address. */
export function registryHosts(address: string): string {
  return `server = "${address}"\n\n[host."${address}"]\ncapabilities = ["pull", "resolve"]\n`;
}
