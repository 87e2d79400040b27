/** What the look at a node before a first install is made of; the executor, the probe and the rights share it. */
export const preflight = {
  container: 'keelson-host-probe',
  /** Label of the Jobs and their pods: UID of the installation that they look for. */
  label: 'keelson.dev/preflight',
  /** On a Job: digest of what it was made for; another one is another look. */
  lookFor: 'keelson.dev/preflight-look',
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

/** Name of the Job that looks at the n-th node of OVN central, beside the workload: a namespace holds one. Rights can name it. */
export const preflightJob = (n: number): string => `keelson-preflight-${n}`;

/** Every name that such a Job can have. */
export const preflightJobs: readonly string[] = Array.from({ length: mostCentral }, (_, n) => preflightJob(n));
