import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { adminUser, kubeconfigText, type StaticUser, writeTokens } from '../apiserver/credentials.ts';
import { apiServerUrl, tokensFile } from './controlPlane.ts';
import type { Pki } from './pki.ts';
import type { ClusterState } from './state.ts';

const manager: StaticUser = { name: 'system:kube-controller-manager', groups: [] };
const scheduler: StaticUser = { name: 'system:kube-scheduler', groups: [] };
/** CoreDNS; its rights come with the Service it stands behind. */
export const dnsUser: StaticUser = { name: 'system:coredns', groups: [] };
const proxy: StaticUser = { name: 'system:kube-proxy', groups: ['system:node-proxier'] };

/** Texts of the kubeconfigs of a cluster's own callers. Each has no more rights than in any other cluster. */
export interface Kubeconfigs {
  readonly admin: string;
  readonly manager: string;
  readonly scheduler: string;
  readonly proxy: string;
  readonly dns: string;
  readonly kubelets: Readonly<Record<string, string>>;
}

function kubelet(node: string): StaticUser {
  return { name: `system:node:${node}`, groups: ['system:nodes'] };
}

/** Writes the token file with one token per caller and answers their kubeconfigs. */
export async function createAccounts(state: ClusterState, pki: Pki): Promise<Kubeconfigs> {
  const kubelets = state.nodes.map((node) => kubelet(node.name));
  const tokens = await writeTokens(tokensFile(state), [adminUser, manager, scheduler, proxy, dnsUser, ...kubelets]);
  const ca = readFileSync(pki.caCert, 'utf8');
  const text = (user: StaticUser): string =>
    kubeconfigText({ url: apiServerUrl(state), ca, token: tokens[user.name] ?? '' });
  return {
    admin: text(adminUser),
    manager: text(manager),
    scheduler: text(scheduler),
    proxy: text(proxy),
    dns: text(dnsUser),
    kubelets: Object.fromEntries(state.nodes.map((node) => [node.name, text(kubelet(node.name))])),
  };
}

/** Where the admin's kubeconfig of a cluster is. */
export function adminKubeconfig(state: ClusterState): string {
  return join(state.directory, 'kubeconfig');
}
