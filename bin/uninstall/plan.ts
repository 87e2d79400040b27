import type { UninstallAction, UninstallPlan } from '../../constructs/api/uninstall.ts';
import { formatProblems, type Problem } from '../../constructs/lib/problems.ts';
import { table } from '../output.ts';

const words: Readonly<Record<UninstallAction, string>> = {
  delete: 'delete',
  letGo: 'let go: it stays, without an owner and without our marks',
  forget: 'leave: it is not ours; marks that we may have left on it are taken off',
};

/** What an uninstall does not do, and a person may want to. */
const leftByNetwork: readonly string[] = [
  'not touched, and yours to remove when the network is to be gone for good:',
  '  objects of Kube-OVN in the cluster (subnets, vpcs, ips, vlans), whose finalizers its controller serves: remove them',
  '  while it runs. Their definitions go only with --delete-definitions, and only when no object of them is left.',
  '  on every node: /etc/origin/openvswitch and /etc/origin/ovn (a new install on top of them joins the old databases),',
  '  /var/log/{openvswitch,ovn,kube-ovn}, /etc/cni/net.d/01-kube-ovn.conflist, bridge br-int, rules of iptables.',
];

export interface Standing {
  readonly release: string;
  readonly namespace: string;
  /** What keeps it from being carried out. */
  readonly problems: readonly Problem[];
  /** Digest of an uninstall that was approved before and is not done. */
  readonly running: string | undefined;
}

/** What a person reads before approving. */
export function describePlan(plan: UninstallPlan, { release, problems, running }: Standing): string {
  const rows = plan.steps.flatMap(({ name, objects }) => objects.map(({ id, action }) => [name, id, words[action]]));
  const flags = plan.mode === 'delete' ? ' --delete' : '';
  const lines = [
    `uninstall of ${release}: ${plan.mode === 'delete' ? 'what can be made again is deleted' : 'everything stays in the cluster'}`,
    '',
    rows.length === 0 ? 'the ledger holds no object' : table(['STEP', 'OBJECT', 'WHAT HAPPENS'], rows),
    '',
    ...(plan.mode === 'delete' && release.startsWith('network-') ? [...leftByNetwork, ''] : []),
    ...(running === undefined ? [] : [`running: ${running} was approved before and is not done`]),
    ...(problems.length === 0 ? [] : [`it can not be carried out yet; ${formatProblems(problems)}`]),
    `plan ${plan.digest}`,
    `to do this: keelson uninstall ${release}${flags} --approve ${running ?? plan.digest}`,
  ];
  return lines.join('\n');
}
