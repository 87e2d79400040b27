import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeServiceAccountKeys } from '../apiserver/credentials.ts';
import { mustRun } from './run.ts';

/** Files of a cluster's certificates and keys. One authority signs them; the controller-manager's signers use it too. */
export interface Pki {
  readonly caCert: string;
  readonly caKey: string;
  readonly serverCert: string;
  readonly serverKey: string;
  /** Key pair of service account tokens. */
  readonly accountKey: string;
  readonly accountPublicKey: string;
}

const elliptic = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc'];

/** Makes the authority, the API server's certificate for `names` (DNS names and IPs) and the token keys. */
export async function createPki(directory: string, names: readonly string[]): Promise<Pki> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const at = (name: string): string => join(directory, name);
  const files = {
    caCert: at('ca.crt'),
    caKey: at('ca.key'),
    serverCert: at('apiserver.crt'),
    serverKey: at('apiserver.key'),
  };
  // An empty configuration: the distribution's own would add extensions of its choice.
  const config = at('openssl.cnf');
  writeFileSync(config, '[req]\ndistinguished_name = dn\n[dn]\n');
  const alternatives = names.map((name) => `${/^[0-9.]+$/.test(name) ? 'IP' : 'DNS'}:${name}`).join(',');
  const common = ['openssl', 'req', '-config', config, '-x509', ...elliptic, '-days', '3650'];
  await mustRun([
    ...common,
    ...['-subj', '/CN=keelson-cluster-ca', '-keyout', files.caKey, '-out', files.caCert],
    ...['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,digitalSignature'],
  ]);
  await mustRun([
    ...common,
    ...['-subj', '/CN=kube-apiserver', '-CA', files.caCert, '-CAkey', files.caKey],
    ...['-keyout', files.serverKey, '-out', files.serverCert],
    ...['-addext', `subjectAltName=${alternatives}`, '-addext', 'extendedKeyUsage=serverAuth'],
  ]);
  const { privateKey, publicKey } = await writeServiceAccountKeys(directory);
  return { ...files, accountKey: privateKey, accountPublicKey: publicKey };
}
