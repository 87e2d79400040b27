/** What the look at a node before a first install is made of; the executor, the probe and the rights share it. */
export const preflight = {
  container: 'keelson-host-probe',
  /** Where the probe finds the top folders of the host. */
  root: '/host',
  /** Where a container leaves its last words, and how many bytes of them a kubelet keeps. */
  message: '/dev/termination-log',
  messageBytes: 4096,
  /** Configurations of the container network. */
  cni: '/etc/cni/net.d',
  /** Kube-OVN's own configuration there. */
  ownConfiguration: '01-kube-ovn.conflist',
  /** Clients and RAFT of both databases. */
  ports: [6641, 6642, 6643, 6644],
} as const;

/** Most nodes that carry OVN central. */
const mostCentral = 9;

/** Name of the Job that looks at the n-th node of OVN central. It holds no node's name, so that rights can name it. */
export const preflightJob = (installation: string, n: number): string => `keelson-preflight-${installation}-${n}`;

/** Every name that such a Job of an installation can have. */
export const preflightJobs = (installation: string): string[] =>
  Array.from({ length: mostCentral }, (_, n) => preflightJob(installation, n));
