import type { JsonObject } from '../../constructs/lib/json.ts';
import { clusterDomain, dnsServiceAddress } from './addresses.ts';
import type { ClusterState, NodeRecord } from './state.ts';

/** The cgroup that holds every container of a node. */
export function nodeCgroup(state: ClusterState, node: NodeRecord): string {
  return `/${state.cgroup}/${node.name}`;
}

/** KubeletConfiguration of one node. */
export function kubeletConfig(state: ClusterState, node: NodeRecord): JsonObject {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot: nodeCgroup(state, node),
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    failCgroupV1: false,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    resolvConf: '/etc/resolv.conf',
    clusterDNS: [dnsServiceAddress],
    clusterDomain,
    // The disk is the host's: how full it is says nothing about this cluster.
    evictionHard: {
      'memory.available': '0%',
      'nodefs.available': '0%',
      'imagefs.available': '0%',
      'nodefs.inodesFree': '0%',
    },
    imageGCHighThresholdPercent: 100,
    nodeStatusUpdateFrequency: '5s',
    nodeLeaseDurationSeconds: 20,
    syncFrequency: '30s',
    maxPods: 60,
    registerNode: true,
    serializeImagePulls: false,
    // A container that a test kills comes back within a second; how long a kubelet lets it wait says nothing of ours.
    featureGates: { KubeletCrashLoopBackOffMax: true, ReduceDefaultCrashLoopBackOffDecay: true },
    crashLoopBackOff: { maxContainerRestartPeriod: '1s' },
  };
}

/** KubeProxyConfiguration of one node: iptables, and no kernel limits touched, which would be the host's. */
export function kubeProxyConfig(state: ClusterState, node: NodeRecord): JsonObject {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    hostnameOverride: node.name,
    clientConnection: { kubeconfig: '/etc/keelson/kube-proxy.kubeconfig' },
    clusterCIDR: state.podCIDR,
    detectLocalMode: 'ClusterCIDR',
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    iptables: { minSyncPeriod: '200ms', syncPeriod: '30s' },
    metricsBindAddress: '127.0.0.1:10249',
    healthzBindAddress: '127.0.0.1:10256',
  };
}
