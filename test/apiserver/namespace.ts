import { randomBytes } from 'node:crypto';
import type { AdminClient } from './client.ts';

/** Creates a namespace of a name that no other test has, and returns the name. */
export async function freshNamespace(admin: AdminClient, prefix: string): Promise<string> {
  const name = `${prefix}-${randomBytes(4).toString('hex')}`;
  await admin.expect('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  });
  return name;
}

export interface TokenInput {
  readonly audiences?: readonly string[];
  readonly expirationSeconds?: number;
  /** The pod that the token is bound to, as a kubelet would ask for it. */
  readonly pod?: { readonly name: string; readonly uid: string };
}

/** A token of a service account through the TokenRequest API; the account is created when it is absent. */
export async function serviceAccountToken(
  admin: AdminClient,
  namespace: string,
  name: string,
  input: TokenInput = {},
): Promise<string> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
  const created = await admin.request('POST', accounts, { body: account });
  if (created.status !== 201 && created.status !== 409) {
    throw new Error(`service account ${namespace}/${name}: ${created.status} ${created.body?.message}`);
  }
  const spec = {
    ...(input.audiences === undefined ? {} : { audiences: input.audiences }),
    expirationSeconds: input.expirationSeconds ?? 3600,
    ...(input.pod === undefined ? {} : { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', ...input.pod } }),
  };
  const reply = await admin.expect('POST', `${accounts}/${name}/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
  });
  return String(reply.body.status.token);
}
